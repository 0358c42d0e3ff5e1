"""Wikipedia, or any other MediaWiki, as a `WebSearcher`; it needs no key."""

import re
from collections.abc import Mapping
from typing import Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.retries import PassingSearchError
from crag.web.search_replies import objects, plain, text
from crag.web.searcher import JsonSearcher

_LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z]{2,12}){0,3}")
_REFUSED = (
    "the wiki refused the request (HTTP 403): Wikimedia's policy requires a contact; "
    "set CRAG_CONTACT to your e-mail address or URL"
)
_MOST_EXTRACTS = 20
"""The most that the API takes."""
_INTRODUCTION = 1200
"""Characters; the API takes at most 1,200."""
_BUSY = re.compile(r"internal_api_error|maxlag|readonly|.*(backend-error|too-busy)")


class WikipediaSearcher(JsonSearcher):
    """Search one Wikipedia through its API, api.php; `options` are those of `JsonSearcher`.

    The snippet of a hit is the introduction of its article, up to 1,200 characters, or the snippet
    of the search. MediaWiki returns the whole text of only one page per request, so the page reader
    fetches the articles.
    """

    provider = "Wikipedia"
    refused = _REFUSED
    longest_query: int = 300
    """Characters; Wikipedia refuses longer queries, so they are cut."""

    def __init__(
        self, *, language: str = "en", base_url: str | None = None, **options: Any
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            message = f"CRAG_WIKIPEDIA_LANGUAGE cannot be {language!r}: write a code such as en"
            raise SearchError(self.provider, "request", message)
        address = base_url or f"https://{language}.wikipedia.org"
        path = "" if address.strip().rstrip("/").endswith(".php") else "/w/api.php"
        super().__init__(address, "CRAG_WIKIPEDIA_URL", path=path, **options)

    def request(self, query: str, limit: int) -> Mapping[str, Any]:
        """Return the request for `query`."""
        parameters = {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "generator": "search",
            "gsrsearch": query,
            "gsrlimit": str(limit),
            "gsrnamespace": "0",
            "gsrprop": "snippet",
            "prop": "info|extracts",
            "inprop": "url",
            "exintro": "1",
            "explaintext": "1",
            "exchars": str(_INTRODUCTION),
            "exlimit": str(min(limit, _MOST_EXTRACTS)),
        }
        return {"method": "GET", "params": parameters}

    def hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Read the pages, which come in any order, sorted by rank."""
        if reply.get("error"):
            raise self._reported(reply["error"])
        result = reply.get("query") or {}
        return [
            Hit(
                plain(page.get("title")),
                text(page.get("fullurl")),
                plain(page.get("extract")) or plain(page.get("snippet")),
            )
            for page in sorted(objects(result["pages"]) if result else [], key=_rank)
        ]

    def _reported(self, error: object) -> SearchError:
        """Return the error that MediaWiki reports with a success status."""
        said = error if isinstance(error, Mapping) else {}
        code, detail = text(said.get("code")), plain(said.get("info"))[:200]
        message = f"{detail or 'the search failed'} ({code or 'no code'})"
        if code == "ratelimited":
            return PassingSearchError(self.provider, "quota", message)
        if _BUSY.match(code):
            return PassingSearchError(self.provider, "server", message)
        return self._error(message, "request")


def _rank(page: Mapping[str, Any]) -> float:
    index = page.get("index")
    return index if isinstance(index, int) else float("inf")
