"""Read the examples of a task from a file, in the format named or in the one its rows show."""

import random
import re
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from langchain_core.documents import Document

from crag.errors import DataError, SettingsError
from crag.papers.bench.examples import (
    FORMATS,
    TASKS,
    Example,
    FormatName,
    Loaded,
    Refused,
    TaskName,
)
from crag.papers.evaluator.pairs import read_pairs
from crag.papers.loading import crag
from crag.papers.loading.alignment import align
from crag.papers.loading.files import JsonRow, ReadLog, collect, json_rows, read_lines, table_rows
from crag.papers.loading.rows import example_of, long_tail

PUBLISHED = {
    "popqa": 1399, "pubhealth": 987, "arc": 1172, "biography": 500, "triviaqa": 11313, "asqa": 948,
}  # fmt: skip
"""Number of rows in the published test sets (Self-RAG, Sec. 4.1; CRAG, App. B; ALCE)."""
_LOOKED_AT, _PASSAGES = 20, 5
_WORD = re.compile(r"\w+")


def load_examples(
    path: Path,
    task: TaskName,
    *,
    format: FormatName = "auto",  # noqa: A002 - the name users know
    as_published: bool = False,
) -> Loaded:
    """Read the examples of `task` from a file, or from a folder of the CRAG repository.

    With `as_published` the folder is read as the official program reads it: see `crag.read`.

    Rows that cannot be used are refused one by one; a file that is not what it should be, or whose
    questions and knowledge do not belong together, stops here.

    Raises:
        DataError: the file cannot be read, or is of another task or format, or is misaligned.
        SettingsError: there is no such task or format.
    """
    if task not in TASKS:
        raise SettingsError("task", task, f"choose one of {', '.join(TASKS)}")
    if format not in FORMATS:
        raise SettingsError("format", format, f"choose one of {', '.join(FORMATS)}")
    if not path.exists():
        raise DataError(path, "there is no such file or folder")
    chosen = detect(path) if format == "auto" else format
    if path.is_dir():
        if chosen != "crag":
            raise DataError(path, f"the format {chosen!r} is one file; give it, not its folder")
        return crag.read(path, task, as_published=as_published)
    if as_published:
        raise DataError(path, "as-published reads a folder of the CRAG repository, not a file")
    read = crag.read_pairs if chosen == "crag" else partial(read_rows, form=chosen)
    return checked_passages(path, read(path, task))


def read_rows(path: Path, task: TaskName, form: FormatName) -> Loaded:
    """Read a file of one JSON object for each question; another size than published is noted.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    log = ReadLog(path)
    rows = (table_rows if path.suffix.lower() in {".tsv", ".txt"} else json_rows)(path, log)
    if form == "popqa":
        rows = long_tail(rows, task, log)

    def build(row: JsonRow, number: int, log: ReadLog) -> Example:
        return example_of(row, task, number, log)

    loaded = collect(log, rows, build)
    found, published = len(loaded.examples) + len(loaded.refused), PUBLISHED.get(task)
    if form in {"self-rag", "alce"} and published and found != published:
        log.repair(f"it has {found} rows; the published test set has {published}")
    return loaded._replace(notes=log.notes)


def sample(loaded: Loaded, limit: int, seed: int) -> Loaded:
    """Keep `limit` examples drawn at random by `seed`, in the file's order, and note it."""
    total = len(loaded.examples)
    if limit >= total:
        return loaded
    chosen = sorted(random.Random(seed).sample(range(total), limit))  # noqa: S311 - no secret
    note = f"{limit} of {total} examples drawn with seed {seed}"
    return loaded._replace(
        examples=[loaded.examples[place] for place in chosen], notes=[*loaded.notes, note]
    )


def kept_apart(loaded: Loaded, trained_on: Sequence[Path]) -> Loaded:
    """Skip questions that occur in training files, or whose subject is relevant there.

    The paper trains its evaluator on the rows of PopQA outside the test set (CRAG, App. B), so both
    may ask about the same subject. Case and punctuation are ignored.

    Raises:
        DataError: an evaluator cannot be trained on one of the files.
    """
    pairs = [pair for path in trained_on for pair in read_pairs(path)]
    asked = {_plain(pair.question) for pair in pairs}
    titles = {_plain(pair.title) for pair in pairs if pair.positive and pair.title}
    kept, refused = [], list(loaded.refused)
    for one in loaded.examples:
        if _plain(one.question) in asked or titles & set(map(_plain, one.gold_titles)):
            reason = "the evaluator was trained on it or on its page"
            refused.append(Refused(f"question {one.id!r}", reason, one.id))
        else:
            kept.append(one)
    return Loaded(kept, refused, loaded.notes)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def checked_passages(path: Path, loaded: Loaded) -> Loaded:
    """Note whether passages seem to belong to their questions, and raise if they are shifted.

    Few common words are not an error, because retrieval can fail. It is an error if the passages of
    the next or previous row fit better throughout the file.

    Raises:
        DataError: the passages of each row belong to a neighbour.
    """
    found = align(
        [example.question for example in loaded.examples],
        ["\n".join(map(_text, example.documents[:_PASSAGES])) for example in loaded.examples],
    )
    if found.shift:
        overlaps = f"{found.overlaps[found.shift]:.2f} instead of {found.overlaps[0]:.2f}"
        problem = f"each row has the passages of the row at {found.shift:+d} (overlap {overlaps})"
        raise DataError(path, f"{problem}; create the file again")
    if found.moved:
        near = loaded.examples[found.moved[0].first].id
        note = f"{path.name}: near id {near!r} passages fit neighbouring questions better"
        return loaded._replace(notes=[*loaded.notes, note])
    return loaded


def _text(document: Document) -> str:
    return f"{document.metadata['title']} {document.page_content}"


def detect(path: Path) -> FormatName:
    """Detect the format of a file from its first rows, or of a folder.

    Raises:
        DataError: no format matches, or more than one does.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        return "crag"
    if suffix == ".tsv":
        return "popqa"
    if suffix not in {".json", ".jsonl"}:
        lines = read_lines(path, ReadLog(path))[:_LOOKED_AT]
        if any(crag.SEPARATOR in line for line in lines):
            return "crag"
    rows = [row for _, row in islice(json_rows(path, ReadLog(path)), _LOOKED_AT)]
    found: set[FormatName] = {name for row in rows for name in formats_of(row)}
    if len(found) == 1:
        return found.pop()
    if not found and any({"text", "label"} <= row.keys() for row in rows):
        raise DataError(path, "its rows are labelled pairs, for crag train, not questions")
    seen = f"it looks like {', '.join(sorted(found))}" if found else "nothing marks it"
    choice = ", ".join(FORMATS[1:])
    raise DataError(path, f"which format is it? {seen}. Name it with format=: one of {choice}")


def formats_of(row: JsonRow) -> set[FormatName]:
    """Return the formats that a row matches."""
    keys = row.keys()
    marks: dict[FormatName, bool] = {
        "alce": "qa_pairs" in row,
        # Self-RAG ships ALCE's items, with its own passages added.
        "self-rag": "qa_pairs" not in row
        and (bool({"ctxs", "top_contexts", "answerKey"} & keys) or {"input", "topic"} <= keys),
        "ours": "documents" in row,
        "popqa": "possible_answers" in row and not {"ctxs", "documents"} & keys,
    }
    found: set[FormatName] = {name for name, marked in marks.items() if marked}
    return found or ({"ours"} if {"question", "answers"} <= keys else set())
