"""Labelled pairs of question and text: the data of training and calibration."""

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    StringConstraints,
    ValidationError,
)

from crag.errors import CragError, DataError
from crag.models.model_card import DataFile
from crag.papers.files import file_digest, numbered_objects
from crag.plain import counted
from crag.state import Action

LabelRule = Literal["auto", "title"]
"""How the documents of a question are labelled: see `label_of`."""
_HALF = 0.5
_log = logging.getLogger(__name__)


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


Label = Annotated[float, Field(ge=0, le=1)]


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
    """Read pairs (JSONL: question, title, text, label) or a QA set.

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
    for number, row in numbered_objects(path):
        try:
            if not isinstance(row, dict):
                raise DataError(path, "each line must be one JSON object", number)
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


def describe(path: Path, pairs: Sequence[Pair]) -> DataFile:
    """Return the card's entry for a file: its name, hash and counts."""
    positives = sum(pair.positive for pair in pairs)
    return DataFile(name=path.name, sha256=file_digest(path), pairs=len(pairs), positives=positives)


def by_question(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Group pairs by question, in order of first appearance."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.question, []).append(pair)
    return groups


def label_of(document: Labelled, row: QuestionRow, rule: LabelRule) -> float | None:
    """Label one document of a QA row; None if the row does not determine a label.

    `title` is the paper's rule: 1 if the title equals the gold page's, else 0 (CRAG, Sec. 4.2,
    footnote on PopQA). `auto` takes the document's own `label` or `answer`, else whether it holds
    one of the answers, else the title.
    """
    right = None if row.subject_title is None else float(document.title == row.subject_title)
    if rule == "title":
        return right
    if document.label is not None:
        return document.label
    if document.answer is not None:
        return float(document.answer > 0)
    if row.answers:
        return float(any(answer in document.text for answer in row.answers))
    return right


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


def folded(text: str) -> str:
    """Return a text in lower case, its white space folded."""
    return " ".join(text.lower().split())


def held_out(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split off a development set by question; what leaks of the rest is left out of both."""
    questions = sorted({folded(pair.question) for pair in pairs})
    random.Random(seed).shuffle(questions)  # noqa: S311 - a split, no secret
    chosen = set(questions[: round(len(questions) * share)])
    development = [pair for pair in pairs if folded(pair.question) in chosen]
    return without_leaks(pairs, development), development


def without_leaks(train: Sequence[Pair], development: Sequence[Pair]) -> list[Pair]:
    """Leave out each question that `development` asks too, or whose relevant title it has."""
    titles = {folded(one.title) for one in development if one.positive} - {""}
    leaky = {folded(one.question) for one in development}
    leaky |= {folded(one.question) for one in train if one.positive and folded(one.title) in titles}
    return [one for one in train if folded(one.question) not in leaky]


def check_classes(pairs: Sequence[Pair]) -> None:
    """Reject training data in which every pair has the same class.

    Raises:
        CragError: there are only relevant or only irrelevant texts, or none.
    """
    if len({pair.positive for pair in pairs}) < 2:  # noqa: PLR2004 - both classes
        message = (
            f"the {len(pairs)} pairs to train on are all of one class; an evaluator learns from "
            "relevant texts and from irrelevant ones, such as others retrieved for the questions"
        )
        raise CragError(message)
