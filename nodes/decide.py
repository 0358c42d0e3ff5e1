"""Open a run that reflects, and let the model decide whether to retrieve."""

from collections.abc import Mapping
from typing import Any

from crag.correction.question import is_open, read_question
from crag.errors import SettingsError
from crag.nodes.open_run import OpeningUpdate, opening
from crag.parts import ReflectionBackend
from crag.reflection.driver import Driver, Reflected, ReflectUpdate
from crag.reflection.retrieval_decision import first_choice
from crag.settings import Settings
from crag.state import Choice, FreshEvents, FreshUsage, OpenState


class DecideUpdate(ReflectUpdate):
    """Written by `decide`, with an `OpeningUpdate` where it opens the run."""

    thresholds: None
    action: None
    """Cleared of an earlier question: this one may need no grading."""


class Decide:
    """Read the question, and let the model decide (Self-RAG, Sec. 3.3 and Appendix A.3).

    If the model fails, the graph retrieves. `grades`: the graph grades its documents.

    Raises:
        QuestionError: the input holds no usable question.
        SettingsError: the poster's rule in a graph that does not grade documents.
    """

    def __init__(self, backend: ReflectionBackend, *, grades: bool) -> None:
        self._driver = Driver(backend, "decide", without="retrieve")
        self._grades = grades

    def run(self, state: OpenState, settings: Settings) -> Mapping[str, Any]:
        """Decide in the calling thread."""
        opened = self._opened(state, settings)
        instruction = _instruction(opened or state, settings)
        decided = self._driver.run(lambda: first_choice(instruction, settings), settings)
        return self._update(opened, decided)

    async def arun(self, state: OpenState, settings: Settings) -> Mapping[str, Any]:
        """Decide without blocking the event loop."""
        opened = self._opened(state, settings)
        instruction = _instruction(opened or state, settings)
        decided = await self._driver.arun(lambda: first_choice(instruction, settings), settings)
        return self._update(opened, decided)

    def _opened(self, state: OpenState, settings: Settings) -> OpeningUpdate | None:
        """Open the run, unless it is open already."""
        if settings.form == "poster" and not self._grades:
            allowed = "the poster's rule grades documents, so it needs Self-CRAG"
            raise SettingsError("form", settings.form, allowed)
        if is_open(state):
            return None
        return opening(read_question(state, settings.max_question_characters), settings)

    def _update(self, opened: OpeningUpdate | None, decided: Reflected) -> Mapping[str, Any]:
        choice: Choice = decided.result or _without_decision()
        decision = DecideUpdate(
            thresholds=None,
            action=None,
            approximation=self._driver.approximation,
            choices=[choice],
            passages=[],
            critiques=[],
            search=None,
            reflection=None,
            events=decided.events,
            usage=decided.spending.usage,
        )
        if opened is None:
            return decision
        decision["events"] = FreshEvents(decided.events)
        decision["usage"] = FreshUsage.of(decided.spending.usage)
        return {**opened, **decision}


def _instruction(state: Mapping[str, Any], settings: Settings) -> str:
    posed = settings.profile.posed(state)
    return settings.profile.instruction_for(posed["question"], posed["options"])


def _without_decision() -> Choice:
    return Choice(
        segment=0, hypothesis=0, action="retrieve", ratio=None, emitted="", probabilities={},
        why="the model could not be asked", flags=[],
    )  # fmt: skip
