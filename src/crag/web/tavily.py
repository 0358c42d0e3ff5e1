"""Tavily, the web search service, as a `WebSearcher`."""

from collections.abc import Mapping
from typing import Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.search_replies import objects, plain, text
from crag.web.searcher import JsonSearcher

ADDRESS = "https://api.tavily.com"
_MOST_RESULTS = 20
"""The most that the API takes."""
_REFUSED = "refused, perhaps the plan's limit is reached"


class TavilySearcher(JsonSearcher):
    """Search by Tavily with the user's key; `options` are those of `JsonSearcher`.

    Keyless access is never used, and the key goes to `base_url` and nowhere else. With
    `raw_content` the service also returns the text of each page, which saves fetching it.
    """

    provider = "Tavily"
    unauthorized = "the key is not valid: check TAVILY_API_KEY"
    refused = {403: _REFUSED, 432: _REFUSED, 433: _REFUSED}  # noqa: RUF012 - read only
    largest_reply = 50_000_000
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
        super().__init__(
            base_url or ADDRESS, "TAVILY_BASE_URL", path="/search",
            headers={"Authorization": f"Bearer {key}"}, **options,
        )  # fmt: skip
        self._wanted = {"include_raw_content": "text"} if raw_content else {}

    def request(self, query: str, limit: int) -> Mapping[str, Any]:
        """Return the request for `query`."""
        wanted = {"query": query, "max_results": min(limit, _MOST_RESULTS), **self._wanted}
        return {"method": "POST", "json": wanted}

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
