"""A chat model that grades the texts of a question together."""

from collections.abc import Sequence
from typing import Annotated

from langchain_core.runnables.config import ContextThreadPoolExecutor
from pydantic import BaseModel, BeforeValidator, Field

from crag.answering.forms import Call, FormAsker
from crag.errors import EvaluatorError
from crag.evaluators.cross_encoder import scored
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.state import Thresholds
from crag.text.untrusted import neutral

LONGEST_TEXT = 4000
"""Characters of a text in a prompt; the rest is cut off."""
_MOST, _AT_ONCE = 16, 4
"""Texts in one call, and calls at a time."""
_BEST = 10

_Number = Annotated[int, BeforeValidator(lambda given: str(given).partition("/")[0])]
"""A number, also where it is written as "9/10"."""


class PassageGrade(BaseModel):
    """The grade of one passage."""

    # Bounds are checked apart: not every provider takes them in a schema.
    passage: _Number = Field(description="The number in the passage's tag")
    relevance: _Number = Field(description="A number from 0 (useless) to 10 (states the answer)")


class Grades(BaseModel):
    """One grade for each passage."""

    grades: list[PassageGrade]


class ChatEvaluator:
    """Have a chat model grade all texts of a question together, from 0 to 10.

    A grade g becomes (g - 5) / 5. The default thresholds call a set Correct from a grade of 7 on
    (0.4) and Incorrect below 3 (-0.4); they follow the wording of the prompt and are not
    calibrated. The grades are a form, as `crag.answering.forms` asks for it. These calls are not
    part of a run's count of LLM calls.
    """

    thresholds = Thresholds(upper=0.4, lower=-0.4)

    def __init__(self, model: ChatModel, *, prompts: Prompts = PACKAGED) -> None:
        self._asker, self._prompts = FormAsker(model), prompts

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; an empty text scores -1.0 without a call.

        Raises:
            CragError: the model failed, or a reply has not exactly one grade for each text.
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
        said = self._asker.ask(Call(Grades, messages))
        if said.form is None:
            raise self._asker.failure(said)
        found = {grade.passage: grade.relevance for grade in said.form.grades}
        wanted = range(1, len(texts) + 1)
        if sorted(grade.passage for grade in said.form.grades) != [*wanted]:
            numbers = ", ".join(str(grade.passage) for grade in said.form.grades)
            raise EvaluatorError(f"the chat model graded the passages {numbers} of {len(texts)}")
        if not all(0 <= grade <= _BEST for grade in found.values()):
            raise EvaluatorError(f"the chat model graded {sorted(found.values())} on 0 to {_BEST}")
        return [2 * found[number] / _BEST - 1 for number in wanted]
