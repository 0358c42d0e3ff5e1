"""Labelled pairs of question and text: the data of training and calibration."""

import csv
import io
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from crag.errors import DataError
from crag.models.model_card import DataFile
from crag.papers.loading.records import file_digest
from crag.plain import counted

LabelRule = Literal["auto", "title", "answer", "graded"]
"""How the documents of a question are labelled: see `label_of`."""
RIGHT_PAGE, WRONG_PAGE = 0.5, 0.2
"""Labels of the right page without the answer, and of another page with it."""
_HALF = 0.5
_log = logging.getLogger(__name__)
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_SAID = "a label is a number from 0 (irrelevant) to 1 (relevant), or true or false"


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
    pairs = _once(path, chain.from_iterable(_pairs(path, labels)))
    if not pairs:
        raise DataError(path, "it holds no pair")
    return pairs


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


def label_of(document: Mapping[str, Any], row: Mapping[str, Any], rule: LabelRule) -> float | None:
    """Label one document of a QA row; None if the row does not determine a label.

    `title` is the paper's rule: 1 if the title equals the gold page's, else 0 (CRAG, Sec. 4.2,
    footnote on PopQA). `answer` is whether the text contains a gold answer, from the document's own
    field or by substring. `graded` joins both: the right page with the answer 1, without it 0.5,
    another page with it 0.2, else 0. `auto` takes the document's own `label` or `answer`, else the
    answers, else the title.
    """
    page, gold = document.get("title"), row.get("subject_title") or row.get("s_wiki_title")
    right = None if gold is None else page == gold
    held = _held(document, row)
    match rule:
        case "title":
            return None if right is None else float(right)
        case "answer":
            return None if held is None else float(held)
        case "graded":
            return None if right is None or held is None else _grade(right, held)
        case "auto":
            if "label" in document:
                return _number(document["label"])
            return label_of(document, row, "title" if held is None else "answer")


def _grade(right: bool, held: bool) -> float:
    if right:
        return 1.0 if held else RIGHT_PAGE
    return WRONG_PAGE if held else 0.0


def _held(document: Mapping[str, Any], row: Mapping[str, Any]) -> bool | None:
    if "answer" in document:
        return bool(_number(document["answer"]))
    answers = row.get("answers")
    if isinstance(answers, str):  # Each letter would count as an answer.
        message = f"'answers' is {answers!r}; it must be a list of texts"
        raise TypeError(message)
    return any(answer in _text(document, "text") for answer in answers) if answers else None


def _pairs(path: Path, labels: LabelRule) -> Iterator[list[Pair]]:
    for place, row in _rows(path):
        try:
            yield _of_row(row, labels)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
            raise DataError(path, str(problem), place) from error


def _of_row(row: Mapping[str, Any], labels: LabelRule) -> list[Pair]:
    question = _text(row, "question").strip()
    if not question:
        raise ValueError("the question is empty")
    documents = row.get("documents", row.get("ctxs"))
    if documents is None:
        return [Pair(question, _title(row), _text(row, "text"), _number(row["label"]))]
    pairs = []
    for document in _objects(documents):
        label = label_of(document, row, labels)
        if label is None:
            message = f"no field gives labels by the rule {labels!r}"
            raise ValueError(message)
        pairs.append(Pair(question, _title(document), _text(document, "text"), label))
    return pairs


def _objects(documents: object) -> list[Mapping[str, Any]]:
    if isinstance(documents, list) and all(isinstance(part, dict) for part in documents):
        return documents
    raise TypeError("the documents must be a list of objects, each with a text")


def _text(row: Mapping[str, Any], key: str) -> str:
    if isinstance(value := row[key], str):
        value.encode()  # Half an emoji, left by broken JSON escapes, cannot be encoded as UTF-8.
        return value
    message = f"{key!r} is {value!r}; it must be text"
    raise ValueError(message)


def _title(row: Mapping[str, Any]) -> str:
    return "" if row.get("title") is None else _text(row, "title").strip()


def _number(label: object) -> float:
    """Read a label, from JSON or from CSV."""
    text = str(label).strip().lower()
    try:
        value = _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        value = -1.0
    if 0.0 <= value <= 1.0:
        return value
    message = f"{label!r} is not a label: {_SAID}"
    raise ValueError(message)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line number and content of each record."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, f"it is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise DataError(path, str(error.strerror)) from error
    if path.suffix.lower() == ".csv":
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        try:
            yield from ((reader.line_num, row) for row in reader)
        except csv.Error as error:
            raise DataError(path, str(error), reader.reader.line_num) from error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _json(path, number, line)


def _json(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(path, f"this is not JSON: {error.msg}", number) from error
    if not isinstance(row, dict):
        raise DataError(path, "each line must be one JSON object", number)
    return row


def _once(path: Path, pairs: Iterable[Pair]) -> list[Pair]:
    """Remove duplicate texts of a question and log what was skipped."""
    kept: dict[tuple[str, str, str], Pair] = {}
    empty = repeated = contradictory = 0
    for pair in pairs:
        known = kept.get(pair[:3])
        empty += not pair.text.strip()
        repeated += known is not None
        contradictory += known is not None and known.label != pair.label
        if pair.text.strip() and (known is None or known.label < pair.label):
            kept[pair[:3]] = pair
    for count, what, noun in (
        (empty, "skipped %s with an empty text", "pair"),
        (repeated, "skipped %s", "repeated pair"),
        (contradictory, "used the higher label of %s with two different labels", "pair"),
    ):
        if count:
            _log.warning(f"%s: {what}", path, counted(count, noun))
    return list(kept.values())
