"""Ask many questions: `crag batch` and `crag evaluate`, in this process or on Ray.

Each answer is on disk before it counts, so a batch that was killed goes on with the rest.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crag.api import Graph
from crag.errors import DataError
from crag.events import EventKind, redact
from crag.factory.parts import choose_parts
from crag.graph_registry import graph_named
from crag.plain import problem_of
from crag.runtime.environment import Environment
from crag.settings import Settings
from crag.telemetry import start

_WRITE = 'write lines such as {"question": "…"}'
Row = dict[str, Any]
"""What came of one question: `id`, `error` (why it failed; else empty), `seconds`, and of the final
state what `REPORTED` names."""
State = Mapping[str, Any]
REPORTED = ("question", "action", "answer", "outcome", "citations", "events", "usage")
_PART_FAILED: frozenset[EventKind] = frozenset({
    "model_failed", "evaluator_failed", "retrieval_failed", "search_failed",
})  # fmt: skip
"""Events of parts that failed: with them, the same question may be answered better another time."""


class Question(BaseModel):
    """One line of a file: a question, with what is known to be right about its answer."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, coerce_numbers_to_str=True)

    id: str = ""
    question: str = Field(min_length=1)
    answers: tuple[str, ...] = ()
    """Any of them is right."""
    files: tuple[str, ...] = ()
    """Ends of paths of the files that hold the answer."""
    evidence: tuple[str, ...] = ()
    """Quotations that hold the answer; without any, a text that has an answer in it counts."""
    answerable: bool = True
    """Off: only an abstention is right."""


def read_questions(path: Path) -> list[Question]:
    """Read questions, one JSON object on a line; without an `id` its number is the id.

    Raises:
        DataError: the file, or a line of it, cannot be used, or two lines have one id.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # A text may hold other separators.
    except OSError as error:
        raise DataError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise DataError(path, f"save it as UTF-8: {error}") from error
    found: dict[str, Question] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                question = Question.model_validate_json(line)
            except ValidationError as error:
                problem = f"{problem_of(error, 'the line')}; {_WRITE}"
                raise DataError(path, problem, number) from None
            name = question.id or str(number)
            if name in found:
                problem = f"another line has the id {name!r}: give each question its own"
                raise DataError(path, problem, number)
            found[name] = question.model_copy(update={"id": name})
    if not found:
        raise DataError(path, f"it holds no question: {_WRITE}")
    return list(found.values())


class JsonLines:
    """Objects by their field `key`, one per line, each on disk before the next one starts.

    An unfinished last line of a killed run is removed when the file is opened. Of objects with the
    same key the last one counts. Each has at least the fields `required`; `what` names one.

    Raises:
        DataError: a line is no such object; the file is then not changed.
    """

    def __init__(self, path: Path, required: Collection[str], what: str, key: str = "key") -> None:
        self.path, self.key = path, key
        self.rows: dict[str, Any] = {}
        """By key, in the order in which they were first written."""
        if path.exists() and not path.is_file():
            raise DataError(path, "is no file: name one")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        # Without a whole line, what is there may be a file of the user's.
        for number, line in enumerate((whole or content).splitlines(), start=1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict) or not row.keys() >= set(required):
                self._file.close()
                raise DataError(path, f"is not {what}; use another --output", number)
            self.rows[str(row[key])] = row
        self._file.truncate(len(whole))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row and wait until it is on disk."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows[str(row[self.key])] = row

    def __enter__(self) -> Self:
        """Use the file until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it; one without a row leaves nothing behind."""
        self._file.close()
        if not self.rows:
            self.path.unlink()


async def ask(graph: Graph, question: Question, settings: Settings) -> tuple[Row, State]:
    """Ask one question; return what came of it, and the state, which is empty if the run failed."""
    state: State = {}
    error, start = "", time.perf_counter()
    try:
        state = await graph.ainvoke({"question": question.question}, context=settings)
    except Exception as raised:  # noqa: BLE001 - one question must not end the others
        error = redact(f"{type(raised).__name__}: {raised}")
    seconds = round(time.perf_counter() - start, 3)
    row = {"id": question.id, "error": error, "seconds": seconds}
    row |= {name: state.get(name) for name in REPORTED} | {"question": question.question}
    return row, state


Chosen = tuple[Environment, str, Mapping[str, object]]
"""How questions are answered: the environment, a graph, settings."""


def answer_all(  # noqa: PLR0913 - how a run is done
    questions: Sequence[Question],
    chosen: Chosen,
    output: Path,
    progress: Callable[[int, int], object],
    *,
    concurrency: int = 4,
    ray: str | None = None,
) -> tuple[list[Row], int]:
    """Answer into a file what has no answer there; return all rows, and how many there were before.

    What failed, or had to do without a part that failed, is asked again. With `ray`, the address of
    a cluster, on all of its cores. `progress` receives how many are done, of how many.

    Raises:
        CragError: a part cannot be used, or the file holds something else, or answers of other
            settings or parts.
    """
    run = hashlib.sha256(repr(chosen).encode()).hexdigest()[:16]
    with JsonLines(output, ("id", "run"), "an answer of `crag batch`", "id") as answers:
        if any(row["run"] != run for row in answers.rows.values()):
            problem = "holds answers of another method, other settings or other parts"
            raise DataError(output, f"{problem}: use another --output, or go on with those")
        whole = {
            name for name, row in answers.rows.items() if not (row["error"] or part_failed(row))
        }
        left = [one for one in questions if one.id not in whole]
        before = len(questions) - len(left)
        done = count(before + 1)

        def ready(row: Row, _: State | None = None) -> None:
            answers.append({**row, "run": run})
            progress(next(done), len(questions))

        if ray is None:
            ask_all(left, chosen, ready, concurrency)
        else:
            from crag.runtime.ray_cluster import spread

            for row in spread(left, partial(_asker, chosen), ray):
                ready(row)
        return [answers.rows[one.id] for one in questions], before


def part_failed(row: Row) -> bool:
    """Return whether an answer had to do without a part, such as a model that was away."""
    return any(one["kind"] in _PART_FAILED for one in row["events"] or ())


def ask_all(
    questions: Sequence[Question],
    chosen: Chosen,
    ready: Callable[[Row, State], object],
    concurrency: int,
) -> None:
    """Ask in this process, `concurrency` at a time; `ready` receives what comes of each.

    Raises:
        CragError: a part cannot be used.
    """
    graph, settings = _built(chosen)
    gate = asyncio.Semaphore(concurrency)

    async def one(question: Question) -> None:
        async with gate:
            answered = await ask(graph, question, settings)
        ready(*answered)

    async def every() -> None:
        await asyncio.gather(*map(one, questions))

    asyncio.run(every())


def _built(chosen: Chosen) -> tuple[Graph, Settings]:
    environment, method, settings = chosen
    checked = Settings.model_validate(settings)
    start()
    parts = choose_parts(environment, index_must_exist=True)
    return graph_named(method).build(parts), checked


def _asker(chosen: Chosen) -> Callable[[Question], list[Row]]:
    """Return what asks questions in a worker, with one graph, and one loop for its clients."""
    (graph, settings), loop = _built(chosen), asyncio.Runner()
    return lambda question: [loop.run(ask(graph, question, settings))[0]]
