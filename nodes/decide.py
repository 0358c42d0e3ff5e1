"""Open a run that reflects, and let the model decide whether to retrieve."""

from typing import cast

from crag.errors import SettingsError
from crag.question import read_question
from crag.reflecting import Driver, Reflected, asked_of
from crag.reflection.backend import ReflectionBackend
from crag.reflection.deciding import first_choice
from crag.reflection.records import Choice
from crag.settings import Settings
from crag.state import FreshEvents, FreshUsage, InputState, State, Usage
from crag.updates import DecideUpdate, opening


class _DecideUpdate(DecideUpdate):
    """Nor is anything left of an earlier grading: this question may do without."""

    thresholds: None
    action: None


class Decide:
    """Read the question, and retrieve if the model wants to (Self-RAG, Sec. 3.3 and Appendix A.3).

    A model that fails retrieves. Where documents are not graded, `grades` is off.

    Raises:
        QuestionError: the input holds no usable question.
        SettingsError: the poster's rule is wanted where documents are not graded.
    """

    def __init__(self, backend: ReflectionBackend, *, grades: bool) -> None:
        self._driver = Driver(backend, "decide", without="retrieve")
        self._grades = grades

    def run(self, state: InputState, settings: Settings) -> DecideUpdate:
        """Decide in the calling thread."""
        question, instruction = self._open(state, settings)
        decided = self._driver.run(lambda: first_choice(instruction, settings), settings)
        return self._update(question, decided)

    async def arun(self, state: InputState, settings: Settings) -> DecideUpdate:
        """Decide without blocking the event loop."""
        question, instruction = self._open(state, settings)
        decided = await self._driver.arun(lambda: first_choice(instruction, settings), settings)
        return self._update(question, decided)

    def _open(self, state: InputState, settings: Settings) -> tuple[str, str]:
        if settings.form == "poster" and not self._grades:
            allowed = "the poster's rule grades documents, so it needs Self-CRAG"
            raise SettingsError("form", settings.form, allowed)
        question = read_question(state, settings.max_question_characters)
        return question, asked_of(State(question=question), settings).instruction

    def _update(self, question: str, decided: Reflected) -> DecideUpdate:
        opened = opening(question)
        opened["events"] = FreshEvents(decided.events)
        opened["usage"] = cast("Usage", FreshUsage(cast("dict[str, int]", decided.spending.usage)))
        choice: Choice = decided.result or _without_decision()
        return _DecideUpdate(
            **opened,
            thresholds=None,
            action=None,
            approximation=self._driver.backend.approximation,
            choices=[choice],
            passages=[],
            critiques=[],
            search=None,
            reflection=None,
        )


def _without_decision() -> Choice:
    return Choice(
        segment=0, hypothesis=0, action="retrieve", ratio=None, emitted="", probabilities={},
        why="the model could not be asked", flags=[],
    )  # fmt: skip
