"""Labelled pairs of question and text: the data of training and calibration."""

import csv
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import from_json

from crag.errors import DataError
from crag.models.model_card import DataFile
from crag.papers.loading.records import file_digest, numbered_lines
from crag.plain import counted
from crag.state import Action

LabelRule = Literal["auto", "title", "answer", "graded"]
"""How the documents of a question are labelled: see `label_of`."""
RIGHT_PAGE, WRONG_PAGE = 0.5, 0.2
"""Labels of the right page without the answer, and of another page with it."""
_HALF = 0.5
_log = logging.getLogger(__name__)
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


class Pair(NamedTuple):
    """One question, one text with its title, and the label of how useful the text is."""

    question: str
    title: str
    """May be empty."""
    text: str
    label: float
    """0 (irrelevant) to 1 (relevant); graded labels are between."""

    @property
    def positive(self) -> bool:
        """Whether the text counts as relevant if there are only two classes."""
        return self.label >= _HALF


def _number(label: object) -> object:
    """Read a label as JSON or CSV has it."""
    return _WORDS.get(str(label).strip().lower(), label)


Label = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1)]


class _Titled(BaseModel):
    title: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    text: str


class Labelled(_Titled):
    """A text, and what its row says of it."""

    label: Label | None = None
    answer: Label | None = None
    """Whether it holds the answer."""


class QuestionRow(BaseModel):
    """One line of a QA set: a question with its documents, and what labels these."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    documents: list[Labelled] = Field(validation_alias=AliasChoices("documents", "ctxs"))
    answers: list[str] = []
    subject_title: str | None = Field(
        default=None, validation_alias=AliasChoices("subject_title", "s_wiki_title")
    )
    """The title of the gold page."""
    action: Action | None = None
    """The ideal action, if the data gives it."""


class _PairRow(_Titled):
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: Label


def read_pairs(path: Path, labels: LabelRule = "auto") -> list[Pair]:
    """Read pairs (JSONL or CSV: question, title, text, label) or a QA set (JSONL).

    Each line of a QA set has `question`, `documents` (or `ctxs`) with `title` and `text`, and the
    source of the labels: gold `answers`, the gold page's `subject_title` (or `s_wiki_title`), or a
    `label` or `answer` with each document. Duplicate texts of a question are merged, with the
    higher label. Pairs with an empty text are skipped, because an empty text scores -1 without a
    model. Skipped pairs are logged as a warning.

    Raises:
        DataError: the file is missing, empty or not UTF-8, or a line is invalid.
    """
    return read_labelled(path, labels)[0]


def read_labelled(path: Path, labels: LabelRule) -> tuple[list[Pair], dict[str, Action]]:
    """Read a file as `read_pairs` does, and the ideal action of each question that has one.

    Raises:
        DataError: the file cannot be used, or a question has two actions.
    """
    pairs: list[Pair] = []
    actions: dict[str, Action] = {}
    for number, row in _rows(path):
        try:
            if "documents" not in row and "ctxs" not in row:
                one = _PairRow.model_validate(row)
                pairs.append(Pair(one.question, one.title or "", one.text, one.label))
                continue
            asked = QuestionRow.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise DataError(path, f"{place}: {first['msg']}", number) from error
        for document in asked.documents:
            label = label_of(document, asked, labels)
            if label is None:
                raise DataError(path, f"no field gives labels by the rule {labels!r}", number)
            pairs.append(Pair(asked.question, document.title or "", document.text, label))
        if asked.action and actions.setdefault(asked.question, asked.action) != asked.action:
            raise DataError(path, "the question has another action further up", number)
    kept = _once(path, pairs)
    if not kept:
        raise DataError(path, "it holds no pair")
    return kept, actions


def describe(path: Path, pairs: Sequence[Pair], licence: str | None = None) -> DataFile:
    """Return the card's entry for a file: its name, hash and counts."""
    positives = sum(pair.positive for pair in pairs)
    return DataFile(
        name=path.name, sha256=file_digest(path), pairs=len(pairs), positives=positives,
        licence=licence,
    )  # fmt: skip


def by_question(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Group pairs by question, in order of first appearance."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.question, []).append(pair)
    return groups


def label_of(document: Labelled, row: QuestionRow, rule: LabelRule) -> float | None:
    """Label one document of a QA row; None if the row does not determine a label.

    `title` is the paper's rule: 1 if the title equals the gold page's, else 0 (CRAG, Sec. 4.2,
    footnote on PopQA). `answer` is whether the text contains a gold answer, from the document's own
    field or by substring. `graded` joins both: the right page with the answer 1, without it 0.5,
    another page with it 0.2, else 0. `auto` takes the document's own `label` or `answer`, else the
    answers, else the title.
    """
    right = None if row.subject_title is None else float(document.title == row.subject_title)
    held = None if document.answer is None else float(document.answer > 0)
    if held is None and row.answers:
        held = float(any(answer in document.text for answer in row.answers))
    match rule:
        case "title":
            return right
        case "answer":
            return held
        case "graded":
            if right is None or held is None:
                return None
            return (held or RIGHT_PAGE) if right else held * WRONG_PAGE
        case "auto":
            if document.label is not None:
                return document.label
            return right if held is None else held


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line number and content of each record."""
    lines = list(numbered_lines(path))
    if path.suffix.lower() == ".csv":
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        try:
            yield from ((reader.line_num, row) for row in reader)
        except csv.Error as error:
            raise DataError(path, str(error), reader.reader.line_num) from error
        return
    for number, line in lines:
        try:
            row = from_json(line)
        except ValueError as error:
            raise DataError(path, f"this is not JSON: {error}", number) from error
        if not isinstance(row, dict):
            raise DataError(path, "each line must be one JSON object", number)
        yield number, row


def _once(path: Path, pairs: Sequence[Pair]) -> list[Pair]:
    """Remove duplicate texts of a question and log what was skipped."""
    kept: dict[tuple[str, str, str], Pair] = {}
    full = [pair for pair in pairs if pair.text.strip()]
    for pair in full:
        known = kept.setdefault(pair[:3], pair)
        if known.label < pair.label:
            kept[pair[:3]] = pair
    if empty := len(pairs) - len(full):
        _log.warning("%s: skipped %s with an empty text", path, counted(empty, "pair"))
    if repeated := len(full) - len(kept):
        _log.warning("%s: skipped %s", path, counted(repeated, "repeated pair"))
    return list(kept.values())
