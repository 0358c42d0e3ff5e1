"""Our own JSON lines: `question`, `answers`, `documents` with `title` and `text`.

A document may have `label` (it is about the right thing) or `answer` (it contains an answer); a row
may have `id`, `subject_title`, and `action`, the correct action for its documents.
"""

from pathlib import Path

from crag.bench.examples import Loaded, TaskName
from crag.bench.loading.files import json_rows
from crag.bench.loading.reading import Reading, collect
from crag.bench.loading.tasks import builder


def read(path: Path, task: TaskName) -> Loaded:
    """Read a QA set in our format.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    reading = Reading(path)
    return collect(reading, json_rows(path, reading), builder(task))
