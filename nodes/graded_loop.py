"""Go through graded documents until an answer is good enough."""

from crag.reflection.backend import ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate, asked_of, passage_of, reflected
from crag.reflection.exchange import Steps
from crag.reflection.poster import Grade, poster_form
from crag.reflection.records import Outcome
from crag.settings import Settings
from crag.state import OfferedPassage, State


class GradedLoop:
    """Use, mix or skip each document by its grade and its reflections.

    The rule of the poster about Self-CRAG, which has no published results: an option, not the
    paper's method. Documents without a grade count as medium.
    """

    def __init__(self, backend: ReflectionBackend) -> None:
        self._driver = Driver(backend, "graded_loop")

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Scan in the calling thread."""
        driven = self._driver.run(lambda: _steps(state, settings), settings)
        return reflected(state, driven, self._driver.backend.approximation)

    async def arun(self, state: State, settings: Settings) -> ReflectUpdate:
        """Scan without blocking the event loop."""
        driven = await self._driver.arun(lambda: _steps(state, settings), settings)
        return reflected(state, driven, self._driver.backend.approximation)


def _steps(state: State, settings: Settings) -> Steps[Outcome]:
    passages = state.get("passages") or []
    asked = asked_of(state, settings)._replace(passages=tuple(map(passage_of, passages)))
    return poster_form(
        asked, [_grade(p) for p in passages], settings, own_knowledge=settings.allow_own_knowledge
    )


def _grade(passage: OfferedPassage) -> Grade:
    return passage.get("grade") or "medium"
