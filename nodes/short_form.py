"""Choose the best of one candidate for each passage."""

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate, asked_of
from crag.reflection.rules import OURS, Rules
from crag.reflection.short_form import short_form
from crag.settings import Settings
from crag.state import State


class ShortForm:
    """Generate one candidate for each passage in one batch, and choose by critique.

    The short form of Self-RAG (Sec. 3.3, Eq. 3 and 4): the best candidate of an open question, the
    largest sum over equal answers of a closed one.
    """

    def __init__(
        self,
        backend: ReflectionBackend,
        retriever: BaseRetriever | None = None,
        rules: Rules = OURS,
    ) -> None:
        self._backend, self._retriever, self._rules = backend, retriever, rules

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the answer with all candidates."""
        driver = Driver(
            self._backend, settings, retriever=self._retriever, rules=self._rules, node="short_form"
        )
        return driver.answer(state, lambda: short_form(asked_of(state, settings), driver))
