"""SearXNG, a self-hosted metasearch engine, as a `WebSearcher`."""

from collections.abc import Mapping
from typing import Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.asking import TIMEOUT, address_of, query_of, shown, unreadable
from crag.web.replies import objects, plain, text
from crag.web.retries import LONGEST_WAIT, patiently
from crag.web.service import JsonService

_PROVIDER = "SearXNG"
_REFUSED = (
    "the server refused to reply in JSON (HTTP 403): allow it in the server's settings.yml, under "
    "`search`, with `formats: [html, json]`, and restart the server"
)


class SearxngSearcher:
    """Search through a SearXNG server, whose settings.yml must allow replies in JSON.

    Raises:
        SearchError: `search` or `asearch` failed; `problem` says why.
    """

    longest_query: int = 1000
    """Characters. SearXNG itself sets no limit; the engines behind it do."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = TIMEOUT,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        address = address_of(_PROVIDER, base_url, "SEARXNG_URL")
        endpoint = address if address.endswith("/search") else f"{address}/search"
        self._service = JsonService(_PROVIDER, endpoint, timeout=timeout, refused=_REFUSED)
        again = patiently(longest_wait)
        self._search, self._asearch = again(self._request), again(self._arequest)

    def __repr__(self) -> str:
        return f"SearxngSearcher({shown(self._service.address)!r})"

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return self._search(self._parameters(query))[:limit]

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        return (await self._asearch(self._parameters(query)))[:limit]

    def _request(self, parameters: Mapping[str, str]) -> list[Hit]:
        return _hits(self._service.get(parameters))

    async def _arequest(self, parameters: Mapping[str, str]) -> list[Hit]:
        return _hits(await self._service.aget(parameters))

    def _parameters(self, query: str) -> dict[str, str]:
        return {"q": query_of(_PROVIDER, query, self.longest_query), "format": "json"}


def _hits(reply: Mapping[str, Any]) -> list[Hit]:
    try:
        results = objects(reply["results"])
    except (KeyError, TypeError) as error:
        raise unreadable(_PROVIDER) from error
    silent = _silent(reply.get("unresponsive_engines"))
    if not results and silent:
        message = f"no engine of the server answered: {silent}. Check its engines, or wait"
        raise SearchError(_PROVIDER, "server", message)
    return [
        Hit(plain(result.get("title")), text(result.get("url")), plain(result.get("content")))
        for result in results
    ]


def _silent(engines: object) -> str:
    """Return the engines that failed, with the reason if the server names one."""
    listed = engines if isinstance(engines, list) else []
    pairs = (entry if isinstance(entry, list) else [entry] for entry in listed[:5])
    return ", ".join(": ".join(plain(part)[:60] for part in pair[:2]) for pair in pairs)
