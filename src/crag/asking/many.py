"""Answer many questions into a file: `crag batch`, in this process or on Ray.

Each answer is on disk before it counts as given, so a run that was killed goes on with the others.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from crag.api import Graph
from crag.asking.json_lines import JsonLines
from crag.errors import DataError
from crag.events import EventKind, redact
from crag.factory.parts import choose_parts
from crag.graph_registry import graph_named
from crag.plain import plain_json, problem_of
from crag.runtime.environment import Environment, Shared
from crag.settings import Settings

Row = dict[str, Any]
"""What came of one question: `id`, `error` (why it failed; else empty), `seconds`, and of the final
state what `REPORTED` names."""
REPORTED = ("question", "action", "answer", "outcome", "citations", "events", "usage")
_INDIFFERENT = {"config", "contact", "read_megabytes", "read_seconds", "telemetry"}
"""Fields of the environment that change no answer."""
_PART_FAILED: frozenset[EventKind] = frozenset({
    "model_failed", "evaluator_failed", "retrieval_failed", "search_failed",
})  # fmt: skip
"""Events of parts that failed: with them, the same question may be answered better another time."""


_Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]
"""One text stands for a list of it."""


class Question(BaseModel):
    """One line of a file: a question, with what is known to be right about its answer."""

    model_config = ConfigDict(
        frozen=True, str_strip_whitespace=True, coerce_numbers_to_str=True, populate_by_name=True
    )

    id: str = ""
    question: str = Field(min_length=1)
    answers: _Texts = Field(default=(), validation_alias=AliasChoices("answers", "answer"))
    """Any of them is right."""
    files: _Texts = Field(default=(), validation_alias=AliasChoices("files", "file"))
    """Ends of paths of the files that hold the answer."""
    evidence: _Texts = ()
    """Quotations that hold the answer; without any, a text that has an answer in it counts."""
    answerable: bool = True
    """Off: only an abstention is right."""


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """Read questions, one JSON object on a line; without an `id` its number is the id.

    Raises:
        DataError: the file, or a line of it, cannot be used.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # A text may hold other separators.
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(path, "it is not in UTF-8: save it as UTF-8") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                given = plain_json(json.loads(line))
                if isinstance(given, dict):  # What is null is left out.
                    named = {name: value for name, value in given.items() if value is not None}
                    given = {"id": number} | named
                found.append(Question.model_validate(given))
        except ValidationError as error:
            raise DataError(path, problem_of(error, "the line"), number) from None
        except ValueError as error:
            raise DataError(path, f"it is no JSON: {error}", number) from error
    if not found:
        raise DataError(path, 'it holds no question: write lines such as {"question": "…"}')
    return found[:limit]


async def ask(
    graph: Graph, question: Question, settings: Settings
) -> tuple[Row, Mapping[str, Any]]:
    """Ask one question; return what came of it, and the state, which is empty if the run failed."""
    state: Mapping[str, Any] = {}
    error, start = "", time.perf_counter()
    try:
        state = await graph.ainvoke({"question": question.question}, context=settings)
    except Exception as raised:  # noqa: BLE001 - one question must not end the others
        error = redact(f"{type(raised).__name__}: {raised}")
    seconds = round(time.perf_counter() - start, 3)
    row = {"id": question.id, "error": error, "seconds": seconds}
    row |= {name: state.get(name) for name in REPORTED} | {"question": question.question}
    return row, state


async def ask_all(
    graph: Graph,
    questions: Sequence[Question],
    settings: Settings,
    *,
    concurrency: int,
    ready: Callable[[Row], object],
) -> list[tuple[Row, Mapping[str, Any]]]:
    """Ask all questions, `concurrency` at a time, and return the results in order.

    `ready` receives each row when it is there.
    """
    gate = asyncio.Semaphore(concurrency)

    async def one(question: Question) -> tuple[Row, Mapping[str, Any]]:
        async with gate:
            found = await ask(graph, question, settings)
        ready(found[0])
        return found

    return await asyncio.gather(*map(one, questions))


@dataclass(frozen=True)
class Batch:
    """How questions are answered, as workers are told; it can be hashed and sent."""

    environment: Shared
    method: str
    settings: tuple[tuple[str, object], ...] = ()
    """As text, such as those of a command line."""

    @property
    def run(self) -> str:
        """Name what the answers depend on, in sixteen hexadecimal digits."""
        parts = [f"{name}={value}" for name, value in self.environment if name not in _INDIFFERENT]
        keys = [name for name in os.environ if name.endswith("_API_KEY")]  # They choose parts.
        given = (map(str, self.settings), parts, keys)
        told = json.dumps([self.method, *map(sorted, given)])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def graph(self) -> Graph:
        """Build the graph.

        Raises:
            CragError: a part cannot be used, or there is no index.
        """
        parts = choose_parts(Environment.of(self.environment), index_must_exist=True)
        return graph_named(self.method).build(parts)

    def chosen(self) -> Settings:
        """Return the settings."""
        return Settings.model_validate(dict(self.settings))


class AnswerFile(JsonLines[Row]):
    """The answers of one run, by the ids of their questions.

    Raises:
        DataError: it holds something else, or answers of other settings or parts; or another run
            has it open. It is then not changed.
    """

    def __init__(self, path: Path, run: str) -> None:
        self.run = run
        super().__init__(path, ("id", "run"), "an answer of `crag batch`", "id")
        if any(row["run"] != run for row in self.rows.values()):
            self.__exit__()
            problem = "holds answers of another method, other settings or other parts"
            raise DataError(path, f"{problem}: use another --output, or go on with those")

    def append(self, row: Row) -> None:
        """Write a row, and wait until it is on disk."""
        super().append({**row, "run": self.run})


def answer_all(  # noqa: PLR0913 - how a run is done
    questions: Sequence[Question],
    batch: Batch,
    answers: AnswerFile,
    *,
    concurrency: int = 4,
    ray: str | None = None,
    again: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> list[Row]:
    """Answer what has no answer yet, and return those rows; with `again`, failures once more.

    With `ray`, the address of a cluster, on all of its cores. `progress` receives how many are
    done, of how many.

    Raises:
        CragError: a part cannot be used.
    """
    distinct = {one.id: one for one in questions}
    kept = [answers.rows[name] for name in answers.rows.keys() & distinct.keys()]
    done = {row["id"] for row in kept if not (again and (row["error"] or part_failed(row)))}
    rows: list[Row] = []

    def ready(row: Row) -> None:
        answers.append(row)
        rows.append(row)
        progress(len(done) + len(rows), len(distinct))

    left = [one for name, one in distinct.items() if name not in done]
    progress(len(done), len(distinct))
    if ray is None:
        graph, settings = batch.graph(), batch.chosen()
        asyncio.run(ask_all(graph, left, settings, concurrency=concurrency, ready=ready))
    else:
        from crag.runtime.ray_cluster import spread

        for row in spread(left, partial(_asker, batch), address=ray):
            ready(row)
    return rows


def part_failed(row: Row) -> bool:
    """Return whether an answer had to do without a part, such as a model that was away."""
    return any(one["kind"] in _PART_FAILED for one in row["events"] or ())


def _asker(batch: Batch) -> Callable[[Question], list[Row]]:
    """Return what asks questions in a worker, with one graph, and one loop for its clients."""
    graph, settings, loop = batch.graph(), batch.chosen(), asyncio.Runner()
    return lambda question: [loop.run(ask(graph, question, settings))[0]]
