"""Read the examples of a task from a file, in the format named or in the one its rows show."""

import random
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from langchain_core.documents import Document

from crag.errors import DataError, SettingsError
from crag.papers.bench.examples import FORMATS, TASKS, FormatName, Loaded, TaskName
from crag.papers.loading import crag, crag_pairs, popqa
from crag.papers.loading.alignment import align
from crag.papers.loading.files import json_rows, read_lines
from crag.papers.loading.published_json import read_alce, read_ours, read_self_rag
from crag.papers.loading.read_log import JsonRow, ReadLog

READERS: Mapping[FormatName, Callable[[Path, TaskName], Loaded]] = {
    "self-rag": read_self_rag,
    "crag": crag_pairs.read,
    "popqa": popqa.read,
    "alce": read_alce,
    "ours": read_ours,
}
"""The reader of each single-file format."""
_LOOKED_AT, _PASSAGES = 20, 5


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
    return checked_passages(path, READERS[chosen](path, task))


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


def checked_passages(path: Path, loaded: Loaded) -> Loaded:
    """Note whether passages seem to belong to their questions, and raise if they are shifted.

    Few common words are not an error, because retrieval can fail. It is an error if the passages of
    the next or previous row fit better throughout the file.

    Raises:
        DataError: the passages of each row belong to a neighbour.
    """
    found = align(
        [example.question for example in loaded.examples],
        [
            "\n".join(_text(one) for one in example.documents[:_PASSAGES])
            for example in loaded.examples
        ],
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
    if path.is_dir():
        return "crag"
    if path.suffix.lower() == ".tsv":
        return "popqa"
    if path.suffix.lower() not in {".json", ".jsonl"} and _has_pairs(path):
        return "crag"
    found: set[FormatName] = set()
    rows = _first_rows(path)
    for row in rows:
        found |= formats_of(row)
    if len(found) == 1:
        return found.pop()
    if not found and any({"text", "label"} <= row.keys() for row in rows):
        raise DataError(path, "its rows are labelled pairs, for crag train, not questions")
    seen = f"it looks like {', '.join(sorted(found))}" if found else "nothing marks it"
    choice = ", ".join(READERS)
    raise DataError(path, f"which format is it? {seen}. Name it with format=: one of {choice}")


def formats_of(row: JsonRow) -> set[FormatName]:
    """Return the formats that a row matches."""
    marks: dict[FormatName, bool] = {
        "alce": "qa_pairs" in row,
        "self-rag": bool({"ctxs", "top_contexts", "answerKey"} & row.keys())
        or {"input", "topic"} <= row.keys(),
        "ours": "documents" in row,
        "popqa": "possible_answers" in row and not {"ctxs", "documents"} & row.keys(),
    }
    found: set[FormatName] = {name for name, marked in marks.items() if marked}
    if "alce" in found:  # Self-RAG ships ALCE's items, with its own passages added.
        found -= {"self-rag"}
    if not found and {"question", "answers"} <= row.keys():
        found.add("ours")
    return found


def _first_rows(path: Path) -> list[JsonRow]:
    rows = json_rows(path, ReadLog(path))
    return [row for _, row in islice(rows, _LOOKED_AT)]


def _has_pairs(path: Path) -> bool:
    lines = read_lines(path, ReadLog(path))[:_LOOKED_AT]
    return bool(lines) and any(crag_pairs.SEPARATOR in line for line in lines)
