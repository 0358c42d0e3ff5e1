"""Self-RAG's evaluation files: JSON lines with passages under `ctxs` (Self-RAG, App. B.2).

PopQA, TriviaQA and PubHealth have `question` and `answers`, ARC `choices` and `answerKey`, the
biographies `input` and `topic`; ASQA comes as ALCE's JSON, see `crag.bench.loading.alce`.
"""

from pathlib import Path

from crag.bench.examples import Loaded, TaskName
from crag.bench.loading.files import json_rows
from crag.bench.loading.reading import Reading, collect
from crag.bench.loading.tasks import builder

PUBLISHED = {"popqa": 1399, "pubhealth": 987, "arc": 1172, "biography": 500, "triviaqa": 11313}
"""Number of rows in the published test sets (Self-RAG, Sec. 4.1; CRAG, App. B)."""


def read(path: Path, task: TaskName) -> Loaded:
    """Read one evaluation file; a size other than the published one is noted.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    reading = Reading(path)
    loaded = collect(reading, json_rows(path, reading), builder(task))
    expected, found = PUBLISHED.get(task), len(loaded.examples) + len(loaded.refused)
    if expected is not None and found != expected:
        reading.repair(f"it has {found} rows; the published test set has {expected}")
    return loaded._replace(notes=reading.notes)
