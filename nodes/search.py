"""Search the web for the query."""

import time

from pydantic import TypeAdapter

from crag.correction.queries import cut
from crag.events import EventKind, event
from crag.parts import SEARCHER_HINT, Hit, WebSearcher
from crag.runtime.calls import Attempt, within
from crag.settings import Settings
from crag.state import State, Usage, WebPage
from crag.text.urls import distinct, is_wikipedia

_HITS = TypeAdapter(list[Hit])
LONGEST = 400
"""Characters of a query where the searcher sets no limit, which is Tavily's."""
_MOST_HITS = 20
"""The most that Tavily returns for one search."""


def search(state: State, settings: Settings, searcher: WebSearcher | None) -> State:
    """Search once, and sort the hits into the order in which they are read (CRAG, Sec. 4.5).

    The query has at most the `longest_query` characters of the searcher, or 400. Hits from
    Wikipedia come first, as in the paper. Of two hits with the same address the first is
    kept. A search that fails or finds nothing writes none.
    """
    if searcher is None:
        return _nothing("search_unavailable", f"no web search is configured: {SEARCHER_HINT}")
    pages, query, limit = list[WebPage](), state["query"], settings.web_results
    if settings.wikipedia == "prefer":  # Twice as many are looked through (official code).
        limit = max(limit, min(_MOST_HITS, 2 * limit))
    start = time.monotonic()
    with Attempt("web search") as attempt:
        shown = cut(query, getattr(searcher, "longest_query", None) or LONGEST)
        replied = within(settings.max_web_seconds, searcher.search, shown, limit)
        hits = distinct(_HITS.validate_python(replied))
        if settings.wikipedia == "prefer":
            hits.sort(key=lambda hit: not is_wikipedia(hit.url))
        pages = [
            WebPage(
                title=hit.title, url=hit.url, snippet=hit.snippet, status="found", detail="",
                paragraphs=0, text=hit.text,
            )
            for hit in hits[: settings.web_results]
        ]  # fmt: skip
    usage = Usage(searches=1, web_milliseconds=round((time.monotonic() - start) * 1000))
    if attempt.error is not None:
        return _nothing("search_failed", attempt.error, usage)
    if not pages:
        detail = f"the web search found nothing usable for {query!r}"
        return _nothing("search_empty", detail, usage)
    return State(pages=pages, usage=usage)


def _nothing(kind: EventKind, detail: object, usage: Usage | None = None) -> State:
    nothing = event(kind, "search", detail, "continue without web knowledge")
    return State(pages=[], events=[nothing], usage=usage or Usage())
