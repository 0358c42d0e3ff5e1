"""A chat model that grades many texts of a question in one call."""

from collections import Counter
from collections.abc import Sequence

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, Field, ValidationError

from crag.answering.model_calls import ask
from crag.errors import EvaluatorError, SettingsError
from crag.evaluators.chat import DEFAULT_CONCURRENCY, without_thoughts
from crag.evaluators.prompted import PromptedEvaluator, failure, shown
from crag.parts import ChatModel
from crag.plain import filled
from crag.prompts import PACKAGED, Prompts
from crag.runtime.attempt import Attempt
from crag.state import Thresholds

MOST_CHARACTERS = 60_000
"""Characters of all texts in one call."""
WORST, BEST = 0, 10
_NO_FORM = "it is not JSON of the form asked for"


class PassageGrade(BaseModel):
    """The grade of one passage."""

    # Bounds are checked apart: not every provider takes them in a schema.
    passage: int = Field(description="The number in the passage's tag")
    relevance: int = Field(description="A whole number from 0 (useless) to 10 (states the answer)")


class Grades(BaseModel):
    """One grade for each passage."""

    grades: list[PassageGrade]


class _GradesError(EvaluatorError):
    """A reply that does not hold exactly one grade for each passage."""


class BatchChatEvaluator(PromptedEvaluator):
    """Have a chat model grade all texts of a question together, from 0 to 10.

    A grade g becomes (g - 5) / 5. The default thresholds call a set Correct from a grade of 7 on
    (0.4) and Incorrect below 3 (-0.4); they follow the wording of the prompt and are not
    calibrated. This is no baseline of the paper: it costs one call where `ChatEvaluator` costs one
    for each text, and it has grades between yes and no.

    One call holds at most `texts_per_call` texts and 60,000 characters; more texts make more calls.
    The grades are asked for as structured output where the model is a LangChain chat model that has
    it, and as JSON in the reply otherwise or if `structured` is off (for servers that refuse a
    schema). A reply without exactly one grade for each text is asked for once more.

    These calls are not part of a run's count of LLM calls nor of its budget.

    Raises:
        SettingsError: `texts_per_call`, `concurrency` or `thresholds` is out of range.
    """

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        model: ChatModel,
        *,
        texts_per_call: int = 20,
        concurrency: int = DEFAULT_CONCURRENCY,
        thresholds: Thresholds | None = None,
        structured: bool = True,
        prompts: Prompts = PACKAGED,
    ) -> None:
        super().__init__(thresholds or Thresholds(upper=0.4, lower=-0.4), concurrency)
        if texts_per_call < 1:
            raise SettingsError("texts_per_call", texts_per_call, "at least 1")
        self._texts_per_call = texts_per_call
        self._prompts = prompts
        self._model: ChatModel = model.with_config(tags=[TAG_NOSTREAM])
        self._grader = _grader(model) if structured else None

    def groups(self, texts: Sequence[str]) -> list[list[str]]:
        """Fill each call up to the number of texts and of characters it may hold."""
        groups: list[list[str]] = []
        free = 0
        for text in map(shown, texts):
            free -= len(text)
            if not groups or free < 0 or len(groups[-1]) == self._texts_per_call:
                groups.append([])
                free = MOST_CHARACTERS - len(text)
            groups[-1].append(text)
        return groups

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Ask for the grades of a group, and once more if the first reply is malformed."""
        messages = self._prompts.render(
            "grade_batch", question=shown(question), knowledge=_numbered(texts)
        )
        try:
            return _scores(self._grades(messages), len(texts))
        except _GradesError as problem:
            again = _with_problem(messages, problem)
        return _scores(self._grades(again), len(texts))

    def _grades(self, messages: list[AnyMessage]) -> Grades:
        return _structured(self._grader, messages) if self._grader else _said(self._model, messages)


def _grader(model: ChatModel) -> Runnable[list[AnyMessage], object] | None:
    if not isinstance(model, BaseChatModel):
        return None
    try:
        return model.with_structured_output(Grades).with_config(tags=[TAG_NOSTREAM])
    except NotImplementedError:
        return None


def _structured(grader: Runnable[list[AnyMessage], object], messages: list[AnyMessage]) -> Grades:
    grades: object = None
    with Attempt("model") as attempt:
        grades = grader.invoke(messages)
    if isinstance(attempt.error, OutputParserException | ValidationError):
        raise _GradesError(_NO_FORM)
    if attempt.error is not None:
        raise failure(attempt.error)
    if not isinstance(grades, Grades):  # A model that called no tool gives None.
        raise _GradesError(_NO_FORM)
    return grades


def _said(model: ChatModel, messages: list[AnyMessage]) -> Grades:
    reply = ask(model, messages)
    if reply.problem is not None:
        raise failure(reply.detail)
    grades = filled(Grades, without_thoughts(reply.text))
    if grades is None:
        raise _GradesError(_NO_FORM)
    return grades


def _numbered(texts: Sequence[str]) -> str:
    """Write each text, already neutralised, between tags that carry its number."""
    return "\n".join(
        f'<passage number="{number}">\n{text}\n</passage>'
        for number, text in enumerate(texts, start=1)
    )


def _with_problem(messages: list[AnyMessage], problem: _GradesError) -> list[AnyMessage]:
    """Name the problem in the last message; some models refuse two from a user in a row."""
    *before, last = messages
    note = f"An earlier reply could not be used: {problem}. Grade every passage exactly once."
    return [*before, HumanMessage(f"{last.text}\n\n{note}")]


def _scores(grades: Grades, count: int) -> list[float]:
    """Return the scores in the order of the passages.

    Raises:
        _GradesError: it names every passage without exactly one grade in range.
    """
    times_graded = Counter(grade.passage for grade in grades.grades)
    faults = {
        "no grade for passage": [n for n in range(1, count + 1) if n not in times_graded],
        "more than one grade for passage": [n for n, times in times_graded.items() if times > 1],
        f"passages end at {count}, but a grade for": [
            n for n in times_graded if not 1 <= n <= count
        ],
        f"grade outside {WORST} to {BEST} for passage": [
            grade.passage for grade in grades.grades if not WORST <= grade.relevance <= BEST
        ],
    }
    if any(faults.values()):
        named = (f"{what} {', '.join(map(str, ns))}" for what, ns in faults.items() if ns)
        raise _GradesError("; ".join(named))
    middle = (WORST + BEST) / 2
    scores = {grade.passage: (grade.relevance - middle) / middle for grade in grades.grades}
    return [scores[number] for number in range(1, count + 1)]
