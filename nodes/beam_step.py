"""Extend every hypothesis of the beam by one segment."""

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.beam import BeamSearch, KeptSearch
from crag.reflection.driver import (
    Reflected,
    ReflectionNode,
    ReflectUpdate,
    Steps,
    asked_of,
    in_order,
)
from crag.reflection.long_form import search_for
from crag.settings import Settings
from crag.state import Reflection, SearchRecord, State, reflected


class BeamStep(ReflectionNode):
    """Decide, generate a segment for each passage, keep the best: one round of the beam search.

    The long form of Self-RAG (Sec. 3.3, Algorithm 1). The graph repeats the node until the search
    is over. Without a retriever the passages of the state serve for every segment.
    """

    def __init__(self, backend: ReflectionBackend, retriever: BaseRetriever | None = None) -> None:
        super().__init__(backend, "beam_step", retriever)
        self._searches = retriever is not None

    def steps(self, state: State, settings: Settings) -> Steps[BeamSearch]:
        """Return one round of the search, resumed from the state."""
        if not self._searches:
            settings = settings.model_copy(update={"segment_retrieval": "static"})
        asked, known = asked_of(state, settings), reflected(state)
        record = known.get("search")
        if record is None:
            search = search_for(settings)(asked, settings)
        else:
            offered = known["passages"] if _were_offered(record, known) else []
            kept = KeptSearch(record, known["choices"], known["critiques"], offered)
            search = search_for(settings).resumed(asked, settings, kept)
        yield from search.round()
        return search

    def update(self, state: State, driven: Reflected) -> ReflectUpdate:
        """Return the outcome if the search is over, else the search for the next round."""
        search: BeamSearch | None = driven.result
        if search is None or search.over:
            return super().update(state, driven._replace(result=search and search.outcome()))
        kept = search.keep()
        update = super().update(state, driven._replace(result=None))
        known = update["reflection"]
        known["search"], known["choices"] = kept.record, list(kept.choices)
        known["critiques"] = list(kept.critiques)
        if kept.passages:  # Otherwise those of the state may still be offered.
            known["passages"] = in_order(kept.passages, known["passages"])
        return update


def _were_offered(record: SearchRecord, known: Reflection) -> bool:
    """Return whether the passages of the state were offered in an earlier round."""
    read = any(critique["passage"] is not None for critique in known["critiques"])
    return read or record["static"] is not None
