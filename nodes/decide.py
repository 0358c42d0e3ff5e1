"""Let the model decide whether to retrieve."""

from crag.errors import SettingsError
from crag.parts import ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate
from crag.reflection.retrieval_decision import first_choice
from crag.settings import Settings
from crag.state import Choice, Reflection, State


class Decide:
    """Let the model decide (Self-RAG, Sec. 3.3 and Appendix A.3).

    If the model fails, the graph retrieves. `grades`: the graph grades its documents.

    Raises:
        SettingsError: the poster's rule in a graph that does not grade documents.
    """

    def __init__(self, backend: ReflectionBackend, *, grades: bool) -> None:
        self._driver = Driver(backend, "decide", without="retrieve")
        self._grades = grades

    async def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the decision."""
        instruction = self._instruction(state, settings)
        decided = await self._driver.run(lambda: first_choice(instruction, settings), settings)
        choice: Choice = decided.result or _without_decision()
        reflection = Reflection(approximation=self._driver.approximation, choices=[choice])
        return ReflectUpdate(
            reflection=reflection, events=decided.events, usage=decided.spending.usage
        )

    def _instruction(self, state: State, settings: Settings) -> str:
        if settings.form == "poster" and not self._grades:
            allowed = "the poster's rule grades documents, so it needs Self-CRAG"
            raise SettingsError("form", settings.form, allowed)
        posed = settings.profile.posed(state)
        return settings.profile.instruction_for(posed["question"], posed["options"])


def _without_decision() -> Choice:
    return Choice(
        segment=0, hypothesis=0, action="retrieve", ratio=None, emitted="", probabilities={},
        why="the model could not be asked", flags=[],
    )  # fmt: skip
