"""Search services on loopback: what each says on the wire, and the searchers that ask them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from crag.text.urls import distinct
from crag.web import SearxngSearcher, TavilySearcher, WikipediaSearcher
from tests.loopback import Loopback, serving

KEY = "tvly-secret"


class Engine(NamedTuple):
    """One kind of search service."""

    reply: Callable[[Sequence[Hit]], Any]
    """The JSON in which it returns hits; a hit without a URL comes without one."""
    searcher: Callable[..., WebSearcher]
    """Makes our searcher from the address of the service, with `timeout` and `longest_wait`."""
    query: str
    """Name of the parameter that carries the query."""


def _tavily(hits: Sequence[Hit]) -> Any:
    return {
        "query": "as sent",
        "images": [],
        "response_time": 0.4,
        "results": [
            _with_url(
                {"title": h.title, "content": h.snippet, "raw_content": h.text or None}, "url", h
            )
            for h in hits
        ],
    }


def _mediawiki(hits: Sequence[Hit]) -> Any:
    pages = [
        _with_url(
            {"pageid": rank, "ns": 0, "title": h.title, "index": rank, "extract": h.snippet},
            "fullurl",
            h,
        )
        for rank, h in enumerate(hits, start=1)
    ]
    return {"batchcomplete": True} | ({"query": {"pages": pages[::-1]}} if pages else {})


def _searxng(hits: Sequence[Hit]) -> Any:
    results = [_with_url({"title": h.title, "content": h.snippet}, "url", h) for h in hits]
    return {"query": "as sent", "results": results, "answers": [], "unresponsive_engines": []}


def _with_url(entry: dict[str, Any], name: str, hit: Hit) -> dict[str, Any]:
    return entry | ({name: hit.url} if hit.url else {})


ENGINES = {
    "tavily": Engine(_tavily, lambda url, **quick: TavilySearcher(KEY, url, **quick), "query"),
    "wikipedia": Engine(_mediawiki, WikipediaSearcher, "gsrsearch"),
    "searxng": Engine(_searxng, SearxngSearcher, "q"),
}


@contextmanager
def searching(
    name: str, hits: Sequence[Hit], **quick: float
) -> Iterator[tuple[Loopback, WebSearcher]]:
    """Start a service that finds `hits` for every query, and return it with its searcher."""
    engine = ENGINES[name]
    with serving(engine.reply(hits)) as server:
        yield server, engine.searcher(server.url, **{"timeout": 10.0, "longest_wait": 0.01} | quick)


def queries(name: str, server: Loopback) -> list[str]:
    """Return what the service was asked for, in order."""
    return [request[ENGINES[name].query] for request in server.requests]


async def search(made: WebSearcher, query: str = "ada", limit: int = 5) -> list[Hit]:
    """Search; what the graph would not use is left out."""
    found = made.search(query, limit)
    assert len(found) <= limit
    return distinct(found)


async def failing(made: WebSearcher, query: str = "ada") -> SearchError:
    """Return the error that the search raises."""
    with pytest.raises(SearchError) as caught:
        await search(made, query)
    return caught.value
