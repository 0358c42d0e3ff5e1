"""Search the web for the query."""

import time
from collections.abc import Sequence

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from crag.errors import SearchError
from crag.events import Event, EventKind, event
from crag.parts import SEARCHER_HINT, Hit, WebSearcher
from crag.runtime.calls import Attempt, within
from crag.settings import Settings
from crag.state import State, Usage, WebPage
from crag.text.urls import distinct, is_wikipedia

_HITS = TypeAdapter(list[Hit])
_MOST_HITS = 20
"""The most that Tavily returns for one search."""


class SearchUpdate(TypedDict):
    """Written by `search`."""

    pages: list[WebPage]
    events: list[Event]
    usage: Usage


def search(state: State, settings: Settings, searcher: WebSearcher | None) -> SearchUpdate:
    """Search once, and sort the hits into the order in which they are read (CRAG, Sec. 4.5).

    Hits from Wikipedia come first, as in the paper. Of two hits with the same address the first is
    kept. A search that fails or finds nothing writes none.
    """
    if searcher is None:
        return _nothing("search_unavailable", f"no web search is configured: {SEARCHER_HINT}")
    hits, pages = list[Hit](), list[WebPage]()
    query, limit = state["query"], settings.web_results
    if settings.wikipedia == "prefer":  # Twice as many are looked through (official code).
        limit = max(limit, min(_MOST_HITS, 2 * limit))
    start = time.monotonic()
    with Attempt("web search") as attempt:
        replied = within(settings.max_web_seconds, searcher.search, query, limit)
        hits = _HITS.validate_python(replied)
        pages = [
            WebPage(
                title=hit.title, url=hit.url, snippet=hit.snippet, status="found", detail="",
                paragraphs=0, text=hit.text,
            )
            for hit in _in_order(hits, settings)
        ]  # fmt: skip
    usage = Usage(searches=1, web_milliseconds=round((time.monotonic() - start) * 1000))
    if attempt.error is not None:
        lacks_key = isinstance(attempt.error, SearchError) and attempt.error.problem == "key"
        kind: EventKind = "search_unavailable" if lacks_key else "search_failed"
        return _nothing(kind, attempt.error, usage)
    if not pages:
        detail = f"the web search found nothing usable for {query!r}"
        return _nothing("search_empty", detail, usage)
    return SearchUpdate(pages=pages, events=[], usage=usage)


def _in_order(hits: Sequence[Hit], settings: Settings) -> list[Hit]:
    """Return the hits to read, without duplicates and at most `web_results`."""
    chosen = distinct(hits)
    if settings.wikipedia == "prefer":
        chosen = sorted(chosen, key=lambda hit: not is_wikipedia(hit.url))
    return chosen[: settings.web_results]


def _nothing(kind: EventKind, detail: object, usage: Usage | None = None) -> SearchUpdate:
    nothing = event(kind, "search", detail, "continue without web knowledge")
    return SearchUpdate(pages=[], events=[nothing], usage=usage or Usage())
