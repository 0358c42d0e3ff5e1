"""Search the web and select external knowledge from what it returns."""

import asyncio

from crag.edge import Attempt
from crag.errors import SearchError
from crag.events import Event, event
from crag.parts import Evaluator, Hit, WebSearcher
from crag.scoring import filter_strips
from crag.settings import Settings
from crag.sources import source_of_hit, unscored
from crag.state import ExternalUpdate, State, Strip, Usage

_FALLBACK = "go on without knowledge from the web"


class Search:
    """Search for the query, make a strip of each hit, and keep the best (CRAG, Sec. 4.5).

    The evaluator scores the strips against the original question, not the rewritten query.
    """

    def __init__(self, searcher: WebSearcher | None, evaluator: Evaluator) -> None:
        self._searcher = searcher
        self._evaluator = evaluator

    def run(self, state: State, settings: Settings) -> ExternalUpdate:
        """Search in the calling thread."""
        if self._searcher is None:
            return _nothing(_unavailable(), searches=0)
        hits: list[Hit] = []
        with Attempt("web search") as attempt:
            hits = self._searcher.search(state["query"], settings.web_results)
        return self._select(state, settings, hits, attempt)

    async def arun(self, state: State, settings: Settings) -> ExternalUpdate:
        """Search without blocking the event loop."""
        if self._searcher is None:
            return _nothing(_unavailable(), searches=0)
        hits: list[Hit] = []
        with Attempt("web search") as attempt:
            hits = await self._searcher.asearch(state["query"], settings.web_results)
        return await asyncio.to_thread(self._select, state, settings, hits, attempt)

    def _select(
        self, state: State, settings: Settings, hits: list[Hit], attempt: Attempt
    ) -> ExternalUpdate:
        if attempt.error is not None:
            return _nothing(_failed(attempt.error))
        strips = _strips(hits, settings)
        if not strips:
            detail = f"the web search found nothing for {state['query']!r}"
            return _nothing(event("search_empty", "search", detail, _FALLBACK))
        if not settings.select:
            kept: list[Strip] = [{**s, "kept": True, "reason": "not selected"} for s in strips]
            return ExternalUpdate(external=kept, events=[], usage=Usage(searches=1))
        judged, events, usage = filter_strips(
            self._evaluator, state["question"], strips, settings, node="search"
        )
        return ExternalUpdate(external=judged, events=events, usage={**usage, "searches": 1})


def _strips(hits: list[Hit], settings: Settings) -> list[Strip]:
    """Make a strip of each hit: its snippet, or its title if there is no snippet (official)."""
    hits = hits[: settings.web_results]
    if settings.wikipedia_first:
        hits = sorted(hits, key=lambda hit: "wikipedia.org" not in hit.url)
    return [
        unscored(hit.snippet.strip() or hit.title, source_of_hit(hit, index))
        for index, hit in enumerate(hits)
        if hit.snippet.strip() or hit.title.strip()
    ]


def _unavailable() -> Event:
    detail = "no web search is configured: set TAVILY_API_KEY, or give a searcher"
    return event("search_unavailable", "search", detail, _FALLBACK)


def _failed(error: Exception) -> Event:
    unusable = isinstance(error, SearchError) and error.problem == "key"
    return event("search_unavailable" if unusable else "search_failed", "search", error, _FALLBACK)


def _nothing(reason: Event, searches: int = 1) -> ExternalUpdate:
    return ExternalUpdate(external=[], events=[reason], usage=Usage(searches=searches))
