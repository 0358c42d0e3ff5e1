"""Go through graded documents until an answer is good enough."""

from collections.abc import Callable

from crag.parts import ReflectionBackend
from crag.reflection.driver import ReflectionNode, ReflectionOutcome, Steps, asked_of, passage_of
from crag.reflection.rules import added
from crag.settings import Settings
from crag.state import State, reflected


class GradedLoop(ReflectionNode):
    """Use, mix or skip each document by its grade and its critiques.

    The rule of the poster about Self-CRAG, which has no published results: an option, not the
    paper's method. Documents without a grade count as medium.
    """

    def __init__(self, backend: ReflectionBackend) -> None:
        super().__init__(backend, "graded_loop")

    def steps(self, state: State, settings: Settings) -> Steps[ReflectionOutcome]:
        """Return the loop over the passages."""
        passages = reflected(state).get("passages") or []
        asked = asked_of(state, settings)._replace(passages=tuple(map(passage_of, passages)))
        grades = [passage.get("grade") or "medium" for passage in passages]
        loop: Callable[..., Steps[ReflectionOutcome]] = added("poster", "form")
        return loop(asked, grades, settings, own_knowledge=settings.allow_own_knowledge)
