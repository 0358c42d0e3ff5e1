"""Questions whose truth is known: the passages that hold the answer, and those that do not."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from crag.errors import DataError
from crag.papers.loading.records import numbered_lines
from crag.parts import Passage
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
        end = 0
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


class _Paragraph(BaseModel):
    model_config = ConfigDict(extra="ignore")

    title: str = ""
    text: str
    questions: list[_Question]


class _Text(BaseModel):
    title: str | None = ""
    text: str
    answer: bool | None = None
    answers: list[_Answer] = []


class _Asked(BaseModel):
    question: str
    answers: list[str] = []
    passages: list[_Text] | None = None
    documents: list[_Text] | None = None


def read_truths(path: Path, seed: int = 0) -> list[Truth]:
    """Read one of three kinds of JSONL, told apart by their fields.

    Paragraphs: `title`, `text`, `questions` with `question` and `answers` (`text`, `start`); no
    answers: the text does not answer it. Questions with `passages`, each with its `answers`.
    Questions with `answers` and `documents`, whose `answer` says whether they hold one. Offsets
    that do not fit the text are searched for. `seed` draws the paragraphs of the same article.

    Raises:
        DataError: the file is missing, empty or not UTF-8, or a line is none of these.
    """
    paragraphs: list[_Paragraph] = []
    truths: list[Truth] = []
    for number, line in numbered_lines(path):
        try:
            if '"questions"' in line:
                paragraphs.append(_Paragraph.model_validate_json(line))
            else:
                truths.append(_of_question(_Asked.model_validate_json(line)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the row"
            raise DataError(path, f"{place}: {first['msg']}", number) from error
        except ValueError as error:
            raise DataError(path, str(error), number) from error
    truths += _of_paragraphs(paragraphs, seed)
    if not truths:
        raise DataError(path, "it holds no question")
    return truths


def _of_paragraphs(paragraphs: Sequence[_Paragraph], seed: int) -> Iterator[Truth]:
    articles: Mapping[str, list[_Paragraph]] = defaultdict(list)
    for paragraph in paragraphs:
        articles[paragraph.title].append(paragraph)
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    for paragraph in paragraphs:
        here = Passage(paragraph.title, paragraph.text)
        for asked in paragraph.questions:
            gold = _gold(here, asked.answers)
            if not gold:
                yield Truth(asked.question, (), (here,))
                continue
            rest = draw.sample(
                articles[paragraph.title], k=min(len(articles[paragraph.title]), 2 * _OTHERS)
            )
            texts = [one.text for one in rest if one is not paragraph]
            others = [text for text in texts if not _holds(text, asked.answers)]
            kept = tuple(Passage(paragraph.title, text) for text in others[:_OTHERS])
            yield Truth(asked.question, (gold,), kept)


def _of_question(row: _Asked) -> Truth:
    texts = row.passages if row.passages is not None else row.documents
    if texts is None:
        message = "it needs 'questions', 'passages' or 'documents'"
        raise ValueError(message)
    wanted = [_Answer(text=answer) for answer in row.answers if answer]
    gold: list[Gold] = []
    others: list[Passage] = []
    for text in texts:
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


def _holds(text: str, answers: Sequence[Any]) -> bool:
    return any(answer.text.lower() in text.lower() for answer in answers)
