"""SearXNG, a self-hosted metasearch engine, as a `WebSearcher`."""

from collections.abc import Mapping
from typing import Any

from crag.parts import Hit
from crag.web.search_replies import objects, plain, text
from crag.web.searcher import JsonSearcher

_REFUSED = (
    "the server refused to reply in JSON (HTTP 403): allow it in the server's settings.yml, under "
    "`search`, with `formats: [html, json]`, and restart the server"
)


class SearxngSearcher(JsonSearcher):
    """Search through a SearXNG server, whose settings.yml must allow replies in JSON.

    `options` are those of `JsonSearcher`.
    """

    provider = "SearXNG"
    refused = _REFUSED
    longest_query: int = 1000
    """Characters. SearXNG itself sets no limit; the engines behind it do."""

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__(base_url, "SEARXNG_URL", path="/search", **options)

    def request(self, query: str, limit: int) -> Mapping[str, Any]:  # noqa: ARG002 - it has no limit
        """Return the request for `query`."""
        return {"method": "GET", "params": {"q": query, "format": "json"}}

    def hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Read the hits; none at all because every engine failed is an error."""
        results = objects(reply["results"])
        silent = _silent(reply.get("unresponsive_engines"))
        if not results and silent:
            message = f"no engine of the server answered: {silent}. Check its engines, or wait"
            raise self._error(message)
        return [
            Hit(plain(result.get("title")), text(result.get("url")), plain(result.get("content")))
            for result in results
        ]


def _silent(engines: object) -> str:
    """Return the engines that failed, with the reason if the server names one."""
    listed = engines if isinstance(engines, list) else []
    pairs = (entry if isinstance(entry, list) else [entry] for entry in listed[:5])
    return ", ".join(": ".join(plain(part)[:60] for part in pair[:2]) for pair in pairs)
