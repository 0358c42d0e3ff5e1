"""Choose the best of one candidate for each passage."""

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.driver import ReflectionNode, ReflectionOutcome, Steps, asked_of
from crag.reflection.short_form import short_form
from crag.settings import Settings
from crag.state import State


class ShortForm(ReflectionNode):
    """Generate one candidate for each passage in one batch, and choose by critique.

    The short form of Self-RAG (Sec. 3.3, Eq. 3 and 4): the best candidate of an open question, the
    largest sum over equal answers of a closed one.
    """

    def __init__(self, backend: ReflectionBackend, retriever: BaseRetriever | None = None) -> None:
        super().__init__(backend, "short_form", retriever)

    def steps(self, state: State, settings: Settings) -> Steps[ReflectionOutcome]:
        """Return the short form."""
        return short_form(asked_of(state, settings), settings)
