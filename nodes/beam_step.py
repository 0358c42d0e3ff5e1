"""Extend every hypothesis of the beam by one segment."""

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.beam import beam_round
from crag.reflection.driver import Driver, ReflectUpdate, asked_of
from crag.reflection.rules import OURS, Rules
from crag.settings import Settings
from crag.state import State, reflected


class BeamStep:
    """Decide, generate a segment for each passage, keep the best: one round of the beam search.

    The long form of Self-RAG (Sec. 3.3, Algorithm 1). The graph repeats the node until the search
    is over. Without a retriever the passages of the state serve for every segment.
    """

    def __init__(
        self,
        backend: ReflectionBackend,
        retriever: BaseRetriever | None = None,
        rules: Rules = OURS,
    ) -> None:
        self._backend, self._retriever, self._rules = backend, retriever, rules

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the record of the search, with the answer if it is over."""
        if self._retriever is None:
            settings = settings.model_copy(update={"segment_retrieval": "static"})
        asked, record = asked_of(state, settings), reflected(state)
        driver = Driver(
            self._backend, settings, retriever=self._retriever, rules=self._rules, node="beam_step"
        )
        return driver.answer(state, lambda: beam_round(asked, record, driver))
