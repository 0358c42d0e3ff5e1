"""PopQA's own file, a tab-separated table or JSON lines: questions and answers, no passages.

The task is the long tail: subjects whose page is viewed fewer than 100 times a month (Self-RAG,
Sec. 4.1). As task `qa` every row is read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crag.papers.bench.examples import Loaded, TaskName
from crag.papers.loading.files import json_rows, table_rows
from crag.papers.loading.read_log import JsonRow, ReadLog, collect
from crag.papers.loading.tasks import builder

LONG_TAIL = 100


def read(path: Path, task: TaskName) -> Loaded:
    """Read PopQA; the task `popqa` skips and counts rows of popular subjects.

    Raises:
        DataError: the file cannot be read, or no row of it can be used.
    """
    reading = ReadLog(path)
    table = path.suffix.lower() in {".tsv", ".txt"}
    rows = table_rows(path, reading) if table else json_rows(path, reading)
    return collect(reading, _usable(rows, task, reading), builder(task))


def _usable(
    rows: Iterator[tuple[int, JsonRow]], task: TaskName, reading: ReadLog
) -> Iterator[tuple[int, JsonRow]]:
    for number, row in rows:
        answers = _answers(row.get("possible_answers"))
        views = str(row.get("s_pop") or "")
        identity = str(row.get("id") or "")
        if not answers:
            reading.refuse(number, "'possible_answers' is not a JSON list of texts", identity)
        elif task == "popqa" and not views.isdigit():
            reading.refuse(number, f"'s_pop' is {views!r}; it must be a whole number", identity)
        elif task == "popqa" and int(views) >= LONG_TAIL:
            reading.repair(f"left out subjects viewed {LONG_TAIL} times a month or more", number)
        else:
            yield number, {**row, "answers": answers}


def _answers(value: object) -> list[str]:
    """Read the list, which the table writes as JSON text."""
    try:
        answers: Any = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return []
    listed = answers if isinstance(answers, list) else []
    return listed if all(isinstance(one, str) for one in listed) else []
