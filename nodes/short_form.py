"""Let one candidate for each passage compete for the answer."""

from langchain_core.retrievers import BaseRetriever

from crag.reflection.backend import ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate, asked_of, reflected
from crag.reflection.exchange import Steps
from crag.reflection.records import Outcome
from crag.reflection.short_form import short_form
from crag.settings import Settings
from crag.state import State


class ShortForm:
    """Generate one candidate for each passage in one batch, and choose by critique.

    The short form of Self-RAG (Sec. 3.3, Eq. 3 and 4): the best candidate of an open question, the
    largest sum over equal answers of a closed one.
    """

    def __init__(self, backend: ReflectionBackend, retriever: BaseRetriever | None = None) -> None:
        self._driver = Driver(backend, "short_form", retriever=retriever)

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Compete in the calling thread."""
        driven = self._driver.run(lambda: _steps(state, settings), settings)
        return reflected(state, driven, self._driver.backend.approximation)

    async def arun(self, state: State, settings: Settings) -> ReflectUpdate:
        """Compete without blocking the event loop."""
        driven = await self._driver.arun(lambda: _steps(state, settings), settings)
        return reflected(state, driven, self._driver.backend.approximation)


def _steps(state: State, settings: Settings) -> Steps[Outcome]:
    return short_form(asked_of(state, settings), settings)
