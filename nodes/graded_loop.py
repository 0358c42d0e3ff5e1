"""Go through graded documents until an answer is good enough."""

from crag.parts import ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate, asked_of
from crag.reflection.graded_loop import GradedLoop as Loop
from crag.reflection.rules import OURS, Rules
from crag.settings import Settings
from crag.state import State


class GradedLoop:
    """Use, mix or skip each document by its grade and its critiques.

    The rule of the poster about Self-CRAG, which has no published results: an option, not the
    paper's method. Documents without a grade count as medium.
    """

    def __init__(self, backend: ReflectionBackend, rules: Rules = OURS) -> None:
        self._backend, self._rules = backend, rules

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the answer with all candidates."""
        driver = Driver(self._backend, settings, rules=self._rules, node="graded_loop")
        loop = Loop(asked_of(state, settings), driver)
        return driver.answer(state, lambda: loop.run(own_knowledge=settings.allow_own_knowledge))
