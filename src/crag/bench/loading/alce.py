"""ALCE's ASQA file: a JSON list of items with `qa_pairs`, `annotations` and `docs`.

Self-RAG ships the same items under ``data``. Passages are GTR's best hundred or oracle ones. The
published runs use the first five (Self-RAG, App. B.2); a run chooses its own number.
"""

from pathlib import Path

from crag.bench.examples import Loaded, TaskName
from crag.bench.loading.files import json_rows
from crag.bench.loading.reading import Reading, collect
from crag.bench.loading.tasks import builder

ITEMS = 948


def read(path: Path, task: TaskName) -> Loaded:
    """Read ALCE's items; a number other than the published 948 is noted.

    Raises:
        DataError: the file cannot be read, or no item of it can be used.
    """
    reading = Reading(path)
    loaded = collect(reading, json_rows(path, reading), builder(task))
    found = len(loaded.examples) + len(loaded.refused)
    if found != ITEMS:
        reading.repair(f"it has {found} items; the published one has {ITEMS}")
    return loaded._replace(notes=reading.notes)
