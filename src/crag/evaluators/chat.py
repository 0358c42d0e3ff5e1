"""A chat model that grades the texts of a question together."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, Field

from crag.answering.model_calls import filled
from crag.errors import EvaluatorError
from crag.evaluators.texts import scored
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.runtime.attempt import Attempt
from crag.state import Thresholds
from crag.text.untrusted import neutral

LONGEST_TEXT = 4000
"""Characters of a text in a prompt; the rest is cut off."""
_MOST = 16
"""Texts in one call; more texts make more calls."""
_AT_ONCE = 4
_BEST = 10
_NO_SCHEMA = {400, 404, 415, 422, 500, 501}
"""Statuses of servers that know no `response_format`, or not this one."""


class PassageGrade(BaseModel):
    """The grade of one passage."""

    # Bounds are checked apart: not every provider takes them in a schema.
    passage: int = Field(description="The number in the passage's tag")
    relevance: int = Field(description="A whole number from 0 (useless) to 10 (states the answer)")


class Grades(BaseModel):
    """One grade for each passage."""

    grades: list[PassageGrade]


class ChatEvaluator:
    """Have a chat model grade all texts of a question together, from 0 to 10.

    A grade g becomes (g - 5) / 5. The default thresholds call a set Correct from a grade of 7 on
    (0.4) and Incorrect below 3 (-0.4); they follow the wording of the prompt and are not
    calibrated. The grades are asked for as structured output. Where a server refuses that, or does
    not do it, they are asked for once more as JSON in the text, and from then on only so. These
    calls are not part of a run's count of LLM calls.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        thresholds: Thresholds | None = None,
        prompts: Prompts = PACKAGED,
    ) -> None:
        self.thresholds = thresholds or Thresholds(upper=0.4, lower=-0.4)
        self._prompts = prompts
        # Grades must not show up among the tokens of the answer that a graph streams.
        self._plain = model.with_config(tags=[TAG_NOSTREAM]) | _read
        self._structured = _structured(model)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; an empty text scores -1.0 without a call.

        Raises:
            EvaluatorError: two replies have not exactly one grade for each text. What the model
                raises is raised as it is.
        """
        with ContextThreadPoolExecutor(_AT_ONCE) as pool:
            return scored(texts, _MOST, lambda part: self._graded(question, part), run=pool.map)

    def _graded(self, question: str, texts: Sequence[str]) -> list[float]:
        knowledge = "\n".join(
            f'<passage number="{number}">\n{neutral(text[:LONGEST_TEXT])}\n</passage>'
            for number, text in enumerate(texts, start=1)
        )
        asked = neutral(question[:LONGEST_TEXT])
        messages = self._prompts.render("grade_batch", question=asked, knowledge=knowledge)
        for structured in (self._structured, None):
            with Attempt("model") as attempt:
                grades = (structured or self._plain).invoke(messages)
                scores = _scores(grades, len(texts))
                self._structured = structured  # What did not work is not tried again.
                return scores
            if not _is_about_the_form(attempt.error):
                break
        raise attempt.error or EvaluatorError("the chat model gave no grades")


def _structured(model: ChatModel) -> Runnable[Any, object] | None:
    """Return the model with a schema for its reply, or else with a tool; None if it takes none."""
    if not isinstance(model, BaseChatModel):
        return None
    ways: tuple[dict[str, Any], ...] = ({"method": "json_schema"}, {})
    for options in ways:
        with suppress(NotImplementedError, TypeError, ValueError):
            structured = model.with_structured_output(Grades, **options)
            return structured.with_config(tags=[TAG_NOSTREAM])
    return None


def _read(reply: object) -> Grades | None:
    """Read the JSON in a reply, whatever thoughts, fences and prose stand around it."""
    return filled(Grades, str(getattr(reply, "text", reply)))


def _is_about_the_form(error: Exception | None) -> bool:
    """Tell a reply that cannot be read, or a refused schema, from a call that failed."""
    status = getattr(error, "status_code", None)
    return isinstance(error, EvaluatorError | ValueError) or status in _NO_SCHEMA


def _scores(grades: object, count: int) -> list[float]:
    """Return the scores in the order of the passages."""
    if not isinstance(grades, Grades):  # A model that called no tool gives None.
        raise EvaluatorError("the chat model's reply is not JSON of the form asked for")
    found = {grade.passage: grade.relevance for grade in grades.grades}
    if len(found) != len(grades.grades) or sorted(found) != list(range(1, count + 1)):
        numbers = ", ".join(str(grade.passage) for grade in grades.grades)
        raise EvaluatorError(f"the chat model graded the passages {numbers} of {count}")
    if not all(0 <= grade <= _BEST for grade in found.values()):
        raise EvaluatorError(f"the chat model graded {sorted(found.values())} on 0 to {_BEST}")
    return [2 * found[number] / _BEST - 1 for number in range(1, count + 1)]
