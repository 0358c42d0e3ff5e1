"""Extend every hypothesis of the beam by one segment."""

from langchain_core.retrievers import BaseRetriever

from crag.reflection.backend import ReflectionBackend
from crag.reflection.beam import Search
from crag.reflection.driver import Driver, Reflected, ReflectUpdate, asked_of, in_order, reflected
from crag.reflection.exchange import Steps
from crag.reflection.records import SearchRecord
from crag.reflection.resuming import Kept
from crag.settings import Settings
from crag.state import State


class BeamStep:
    """Decide, generate a segment for each passage, keep the best: one round of the beam search.

    The long form of Self-RAG (Sec. 3.3, Algorithm 1). The graph repeats the node until the search
    is over. Without a retriever the passages that were offered serve for every segment.
    """

    def __init__(self, backend: ReflectionBackend, retriever: BaseRetriever | None = None) -> None:
        self._driver = Driver(backend, "beam_step", retriever=retriever)
        self._searches = retriever is not None

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Extend in the calling thread."""
        search = self._search(state, settings)
        driven = self._driver.run(lambda: _round(search), settings)
        return self._update(state, search, driven)

    async def arun(self, state: State, settings: Settings) -> ReflectUpdate:
        """Extend without blocking the event loop."""
        search = self._search(state, settings)
        driven = await self._driver.arun(lambda: _round(search), settings)
        return self._update(state, search, driven)

    def _search(self, state: State, settings: Settings) -> Search:
        if not self._searches:
            settings = settings.model_copy(update={"segment_retrieval": "static"})
        asked, record = asked_of(state, settings), state.get("search")
        if record is None:
            return Search(asked, settings)
        offered = state["passages"] if _were_offered(record, state) else []
        kept = Kept(record, state["choices"], state["critiques"], offered)
        return Search.resumed(asked, settings, kept)

    def _update(self, state: State, search: Search, driven: Reflected) -> ReflectUpdate:
        if search.over and driven.result is not None:
            driven = driven._replace(result=search.outcome())
            return reflected(state, driven, self._driver.backend.approximation)
        update = reflected(state, driven._replace(result=None), self._driver.backend.approximation)
        if driven.result is not None:
            kept = search.put_away()
            update["search"], update["choices"] = kept.record, list(kept.choices)
            update["critiques"] = list(kept.critiques)
            if kept.passages:  # What was given may yet be offered.
                update["passages"] = in_order(kept.passages, update["passages"])
        return update


def _were_offered(record: SearchRecord, state: State) -> bool:
    """Say whether the passages were offered already, or are only there to be."""
    read = any(critique["passage"] is not None for critique in state["critiques"])
    return read or record["static"] is not None


def _round(search: Search) -> Steps[Search]:
    yield from search.round()
    return search
