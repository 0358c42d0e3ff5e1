"""Questions whose truth is known, and a critic that knows it.

A small critic judges worse than the truth of its data, and calls a model for each judgement. Where
the truth is known, no critic is needed to make data for a generator (Alg. 2).
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import AliasChoices, BaseModel, Field, model_validator

from crag.answering.outcome import DECLINED
from crag.errors import DataError
from crag.papers.evaluator.pairs import folded
from crag.papers.files import read_records
from crag.papers.self_rag.critique_cases import Case
from crag.parts import Passage
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.text.sentences import split_sentences

_OTHERS = 3
"""Most passages without the answer that are kept of the question's own article."""


class Gold(NamedTuple):
    """A passage that holds the answer, and where in its text that stands."""

    passage: Passage
    start: int
    end: int

    @property
    def answer(self) -> str:
        """The answer as the passage words it."""
        return self.passage.text[self.start : self.end]

    @property
    def place(self) -> tuple[int, int]:
        """Where in the text the sentence stands in which the answer begins."""
        start = end = 0
        for piece in split_sentences(self.passage.text):
            start, end = end, end + len(piece)
            if self.start < end:
                break
        return start, end

    @property
    def sentence(self) -> str:
        """That sentence, without white space around it."""
        return self.passage.text[slice(*self.place)].strip()


class Truth(NamedTuple):
    """One question with what is known of it."""

    question: str
    gold: tuple[Gold, ...]
    """Empty if no passage of the question holds an answer."""
    others: tuple[Passage, ...]
    """Passages of the same question or article that do not hold the answer."""


class _Answer(BaseModel):
    text: str
    start: int = -1


class _Question(BaseModel):
    question: str
    answers: list[_Answer] = []


class _Text(BaseModel):
    title: str | None = ""
    text: str
    answer: bool | None = None
    answers: list[_Answer] = []


class _Row(BaseModel):
    """A paragraph with its questions, or a question with its texts."""

    title: str = ""
    text: str = ""
    questions: list[_Question] = []
    question: str = ""
    answers: list[str] = []
    texts: list[_Text] = Field([], validation_alias=AliasChoices("passages", "documents"))

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if not self.text and not (self.question and self.texts):
            message = "it needs 'questions', 'passages' or 'documents'"
            raise ValueError(message)
        return self


def read_truths(path: Path, seed: int = 0) -> list[Truth]:
    """Read one of three kinds of JSONL, told apart by their fields.

    Paragraphs: `title`, `text`, `questions` with `question` and `answers` (`text`, `start`); no
    answers: the text does not answer it. Questions with `passages`, each with its `answers`.
    Questions with `answers` and `documents`, whose `answer` says whether they hold one. Offsets
    that do not fit the text are searched for. `seed` draws the paragraphs of the same article.

    Raises:
        DataError: the file is missing, empty or not UTF-8, or a line is none of these.
    """
    rows = read_records(path, _Row)
    articles: Mapping[str, list[_Row]] = defaultdict(list)
    for row in rows:
        articles[row.title].append(row)
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    truths: list[Truth] = []
    for row in rows:
        if row.question:
            truths.append(_of_question(row))
        truths += [_of_paragraph(row, asked, articles[row.title], draw) for asked in row.questions]
    if not truths:
        raise DataError(path, "it holds no question")
    return truths


def _of_paragraph(
    row: _Row, asked: _Question, article: Sequence[_Row], draw: random.Random
) -> Truth:
    here = Passage(row.title, row.text)
    gold = _gold(here, asked.answers)
    if not gold:
        return Truth(asked.question, (), (here,))
    rest = draw.sample(article, k=min(len(article), 2 * _OTHERS))
    answers = [answer.text.lower() for answer in asked.answers]
    others = [
        Passage(one.title, one.text)
        for one in rest
        if one is not row and not any(answer in one.text.lower() for answer in answers)
    ]
    return Truth(asked.question, (gold,), tuple(others[:_OTHERS]))


def _of_question(row: _Row) -> Truth:
    wanted = [_Answer(text=answer) for answer in row.answers if answer]
    gold: list[Gold] = []
    others: list[Passage] = []
    for text in row.texts:
        passage = Passage(text.title or "", text.text)
        found = None if text.answer is False else _gold(passage, text.answers or wanted)
        if found is None and text.answer and not wanted and passage.text.strip():
            found = Gold(passage, 0, len(passage.text))  # The whole of a marked sentence.
        if found:
            gold.append(found)
        elif not text.answer and passage.text.strip():
            others.append(passage)
    return Truth(row.question, tuple(gold), tuple(others))


def _gold(passage: Passage, answers: Sequence[_Answer]) -> Gold | None:
    for answer in answers:
        start, end = answer.start, answer.start + len(answer.text)
        if start < 0 or passage.text[start:end] != answer.text:
            start = passage.text.find(answer.text)
        if answer.text.strip() and start >= 0:
            return Gold(passage, start, start + len(answer.text))
    return None


_DECLINES, _SHORT, _BEST = UTILITY[1], UTILITY[3], UTILITY[4]


class TruthCritic:
    """Label cases about known questions by what their passages hold.

    kind           label
    -------------- -----------------------------------------------------------------------------
    retrieve       Retrieval for a known question, No Retrieval for any other instruction
    retrieve_next  Continue if the evidence has the sentence word by word, Retrieval otherwise
    relevance      Relevant if the evidence holds an answer of the question
    support        Fully if the evidence has the output word by word, No support if the output
                   lacks the answer or declines, Partially if it has the answer and more
    utility        2 if it declines, 4 if it is the answer alone, 5 otherwise
    """

    def __init__(self, truths: Sequence[Truth]) -> None:
        golds: Mapping[str, list[Gold]] = defaultdict(list)
        for truth in truths:
            golds[folded(truth.question)] += truth.gold
        self._golds = dict(golds)

    def labels(self, cases: Sequence[Case]) -> list[str]:
        """Return the label of each case."""
        return [self._label(case) for case in cases]

    def _label(self, case: Case) -> str:
        golds = self._golds.get(folded(case.instruction), [])
        evidence, output = folded(case.evidence), folded(case.output)
        answers = [folded(gold.answer) for gold in golds]
        match case.kind:
            case "retrieve":
                is_known = folded(case.instruction) in self._golds
                return RETRIEVAL if is_known else NO_RETRIEVAL
            case "retrieve_next":
                return CONTINUE if output in evidence else RETRIEVAL
            case "relevance":
                return RELEVANT if any(answer in evidence for answer in answers) else IRRELEVANT
            case "support":
                return _support(evidence, output, answers)
            case "utility" if case.output == DECLINED:
                return _DECLINES
            case "utility":
                return _SHORT if output in answers else _BEST


def _support(evidence: str, output: str, answers: Sequence[str]) -> str:
    if output == folded(DECLINED):
        return NO_SUPPORT
    if output in evidence:
        return FULLY
    return PARTIALLY if any(answer in output for answer in answers) else NO_SUPPORT
