"""JSON files of questions: Self-RAG's evaluation sets, ALCE's ASQA, and our own.

Self-RAG's are JSON lines with passages under `ctxs` (Self-RAG, App. B.2). PopQA, TriviaQA and
PubHealth have `question` and `answers`, ARC `choices` and `answerKey`, the biographies `input` and
`topic`.

ALCE's ASQA is a JSON list of items with `qa_pairs`, `annotations` and `docs`, which Self-RAG ships
under ``data``. Passages are GTR's best hundred or oracle ones. The published runs use the first
five; a run chooses its own number.

Ours are JSON lines with `question`, `answers` and `documents` (`title` and `text`). A document may
have `label` (it is about the right thing) or `answer` (it contains an answer); a row may have `id`,
`subject_title`, and `action`, the correct action for its documents.
"""

from pathlib import Path

from crag.papers.bench.examples import Loaded, TaskName
from crag.papers.loading.files import json_rows
from crag.papers.loading.read_log import ReadLog, collect
from crag.papers.loading.tasks import builder

PUBLISHED = {"popqa": 1399, "pubhealth": 987, "arc": 1172, "biography": 500, "triviaqa": 11313}
"""Number of rows in the published test sets (Self-RAG, Sec. 4.1; CRAG, App. B)."""
ALCE_ITEMS = 948


def read_self_rag(path: Path, task: TaskName) -> Loaded:
    """Read one evaluation file; a size other than the published one is noted.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    return _read(path, task, PUBLISHED.get(task), "rows; the published test set has")


def read_alce(path: Path, task: TaskName) -> Loaded:
    """Read ALCE's items; a number other than the published 948 is noted.

    Raises:
        DataError: the file cannot be read, or no item of it can be used.
    """
    return _read(path, task, ALCE_ITEMS, "items; the published one has")


def read_ours(path: Path, task: TaskName) -> Loaded:
    """Read a QA set in our format.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    return _read(path, task, None, "")


def _read(path: Path, task: TaskName, expected: int | None, what: str) -> Loaded:
    reading = ReadLog(path)
    loaded = collect(reading, json_rows(path, reading), builder(task))
    found = len(loaded.examples) + len(loaded.refused)
    if expected is not None and found != expected:
        reading.repair(f"it has {found} {what} {expected}")
    return loaded._replace(notes=reading.notes)
