"""Wikipedia, or any other MediaWiki, as a `WebSearcher`; it needs no key."""

import re
from collections.abc import Mapping
from typing import Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.asking import TIMEOUT, address_of, query_of, shown, unreadable
from crag.web.replies import objects, plain, text
from crag.web.retries import LONGEST_WAIT, PassingSearchError, patiently
from crag.web.service import JsonService

_PROVIDER = "Wikipedia"
_LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z]{2,12}){0,3}")
_REFUSED = (
    "the wiki refused the request (HTTP 403): Wikimedia's policy requires a contact; "
    "set CRAG_CONTACT to your e-mail address or URL"
)
_MOST_EXTRACTS = 20
_INTRODUCTION = 1200
_BUSY = re.compile(r"internal_api_error|maxlag|readonly|.*(backend-error|too-busy)")


class WikipediaSearcher:
    """Search one Wikipedia through its API, api.php.

    The snippet of a hit is the introduction of its article, up to 1,200 characters, or the snippet
    of the search. MediaWiki returns the whole text of only one page per request, so the page reader
    fetches the articles.

    Raises:
        SearchError: `search` or `asearch` failed; `problem` says why.
    """

    longest_query: int = 300
    """Characters; Wikipedia refuses longer queries, so they are cut."""

    def __init__(
        self,
        *,
        language: str = "en",
        base_url: str | None = None,
        contact: str = "",
        timeout: float = TIMEOUT,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            message = f"CRAG_WIKIPEDIA_LANGUAGE cannot be {language!r}: write a code such as en"
            raise SearchError(_PROVIDER, "request", message)
        chosen = base_url or f"https://{language}.wikipedia.org"
        address = address_of(_PROVIDER, chosen, "CRAG_WIKIPEDIA_URL")
        endpoint = address if address.endswith(".php") else f"{address}/w/api.php"
        self._service = JsonService(
            _PROVIDER, endpoint, timeout=timeout, refused=_REFUSED, contact=contact
        )
        again = patiently(longest_wait)
        self._search, self._asearch = again(self._request), again(self._arequest)

    def __repr__(self) -> str:
        return f"WikipediaSearcher({shown(self._service.address)!r})"

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return self._search(self._parameters(query, limit))[:limit]

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        return (await self._asearch(self._parameters(query, limit)))[:limit]

    def _request(self, parameters: Mapping[str, str]) -> list[Hit]:
        return _hits(self._service.get(parameters))

    async def _arequest(self, parameters: Mapping[str, str]) -> list[Hit]:
        return _hits(await self._service.aget(parameters))

    def _parameters(self, query: str, limit: int) -> dict[str, str]:
        return {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "generator": "search",
            "gsrsearch": query_of(_PROVIDER, query, self.longest_query),
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


def _hits(reply: Mapping[str, Any]) -> list[Hit]:
    """Read the pages, which come in any order, sorted by rank."""
    if reply.get("error"):
        raise _failure(reply["error"])
    try:
        found = reply.get("query") or {}
        pages = objects(found["pages"]) if found else []
    except (KeyError, TypeError) as error:
        raise unreadable(_PROVIDER) from error
    return [
        Hit(
            plain(page.get("title")),
            text(page.get("fullurl")),
            plain(page.get("extract")) or plain(page.get("snippet")),
        )
        for page in sorted(pages, key=_rank)
    ]


def _rank(page: Mapping[str, Any]) -> float:
    index = page.get("index")
    return index if isinstance(index, int) else float("inf")


def _failure(error: object) -> SearchError:
    """Return the error that MediaWiki reports with a success status."""
    said = error if isinstance(error, Mapping) else {}
    code, detail = text(said.get("code")), plain(said.get("info"))[:200]
    message = f"{detail or 'the search failed'} ({code or 'no code'})"
    if code == "ratelimited":
        return PassingSearchError(_PROVIDER, "quota", message)
    if _BUSY.match(code):
        return PassingSearchError(_PROVIDER, "server", message)
    return SearchError(_PROVIDER, "request", message)
