"""Tavily, the web search service, as a `WebSearcher`."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.search_replies import objects, plain, text
from crag.web.searcher import JsonSearcher

ADDRESS = "https://api.tavily.com"
_MOST_RESULTS = 20


class TavilySearcher(JsonSearcher):
    """Search through Tavily with the user's key; `options` are those of `JsonSearcher`.

    The key goes to `base_url` and nowhere else. With `raw_content` the service also returns the
    text of each page, which saves fetching it.
    """

    provider = "Tavily"
    longest_query: int = 400
    """Characters; Tavily refuses longer queries, so they are cut."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        raw_content: bool = True,
        **options: Any,
    ) -> None:
        if not (key := api_key.strip()):
            raise SearchError(self.provider, "key", "the key is empty: set TAVILY_API_KEY")
        headers = {"Authorization": f"Bearer {key}"}
        super().__init__(base_url or ADDRESS, "TAVILY_BASE_URL", headers=headers, **options)
        self._content = {"include_raw_content": "text"} if raw_content else {}

    def request(self, query: str, limit: int) -> Mapping[str, Any]:
        """Return the request for `query`."""
        asked = {"query": query, "max_results": min(limit, _MOST_RESULTS), **self._content}
        return {"method": "POST", "url": f"{self.address}/search", "json": asked}

    def hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Read the hits, with the text of each page where it was asked for."""
        return [
            Hit(
                plain(result.get("title")),
                text(result.get("url")),
                plain(result.get("content")),
                text(result.get("raw_content")),
            )
            for result in objects(reply.get("results"))
        ]

    def refusal(self, status: int, reply: Mapping[str, Any]) -> SearchError | None:
        """Name an invalid key, a spent plan and a malformed query, in the service's words."""
        detail = reply.get("detail")
        said = plain(detail.get("error") if isinstance(detail, Mapping) else detail)[:200]
        said = said or "no reason given"
        match status:
            case HTTPStatus.UNAUTHORIZED:
                message = "the key is not valid: check TAVILY_API_KEY"
                return SearchError(self.provider, "key", message)
            case HTTPStatus.FORBIDDEN | 432 | 433:  # The limits of a plan, and of paying as you go.
                message = f"refused, perhaps the plan's limit is reached: {said}"
            case HTTPStatus.BAD_REQUEST:
                message = f"the query was not accepted: {said}"
            case _:
                return None
        return SearchError(self.provider, "request", message)
