"""Answer many questions into a file: `crag batch`, in this process or on Ray.

Each answer is on disk before it counts as given, so a run that was killed goes on with the others.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from crag.asking.budget import Budget, Meter
from crag.asking.evaluation import Question
from crag.asking.lines import Lines
from crag.asking.running import (
    PART_FAILED,
    AnswerRow,
    Graph,
    concurrently,
    event_loop,
    on_ray,
    run_question,
)
from crag.errors import DataError
from crag.factory.parts import choose_parts, choose_prompts
from crag.factory.web import search_name
from crag.generation.chat import DEFAULT_MODEL
from crag.graph_registry import graph_named
from crag.models.model_card import identity_of
from crag.runtime.environment import Environment, Shared
from crag.settings import settings_from_text

_INDIFFERENT = {
    "config", "contact", "evaluator_seconds", "logs", "model_threads",
    "read_megabytes", "read_seconds", "telemetry",
}  # fmt: skip
"""Fields of the environment that change no answer: with any other, it is another run."""
_MODELS = {"embedding_model", "reranker", "evaluator", "evaluator_fallback", "reflection"}
"""Fields that may name the folder of a model."""
_PRICES = {"input_price", "output_price"}
"""Settings that change none, so that a run may go on with a limit of cost."""

_FAILED = PART_FAILED | {"reranker_failed", "search_failed"}


class BatchAnswer(AnswerRow):
    """A line of the file."""

    key: str
    """Names the question with its id: one that is there is not asked again."""
    run: str
    """Names method, settings and parts: a file holds the answers of one run."""
    question: str


class Asking(NamedTuple):
    """How questions are answered, as it is told to workers; it can be hashed."""

    environment: Shared
    method: str
    """Of `crag.graph_registry`."""
    settings: tuple[tuple[str, object], ...]
    contents: tuple[str, ...] = ()
    """Of `contents_of`: workers do not look themselves, as their folders may be other ones."""

    @property
    def run(self) -> str:
        """Name what the answers depend on, in sixteen hexadecimal digits."""
        parts = {name: str(value) for name, value in self.environment if name not in _INDIFFERENT}
        deciding = [str(setting) for setting in self.settings if setting[0] not in _PRICES]
        told: list[object] = [self.method, sorted(deciding), sorted(parts.items())]
        told += [self.contents] if self.contents else []
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def key(self, question: Question) -> str:
        """Name a question."""
        told = f"{question.id}\0{question.question}".encode()
        return hashlib.sha256(told).hexdigest()[:16]


def contents_of(environment: Shared) -> tuple[str, ...]:
    """Tell what the names of parts leave open.

    That is what is in their folders, such as a model calibrated anew or prompts that were edited;
    and the search service and the chat model that a key chooses where none is named.

    Raises:
        PromptError: the folder of prompts cannot be used.
        SettingsError: there is no search service of the name.
    """
    place = Environment.of(environment)
    named = [str(value) for name, value in environment if name in _MODELS and value]
    folders = [identity_of(name) for name in named if Path(name).is_dir()]
    model = place.model or (DEFAULT_MODEL if place.openai_api_key else "")
    return (*folders, choose_prompts(place).identity, search_name(place)[0], model)


@dataclass
class Ended:
    """How a run ended."""

    questions: int
    resumed: int = 0
    """Asked by an earlier run."""
    resumed_failed: int = 0
    """Those of them that failed."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Of the answers of this run."""
    part_failed: int = 0
    """Answers of this run that had to do without a part: a model that was away, for one."""
    usage: dict[str, float] = field(default_factory=dict)
    """Spent by this run."""
    stopped: str = ""
    """The limit that ended it early."""


class AnswerFile(Lines[BatchAnswer]):
    """The answers of one run.

    Raises:
        DataError: the file holds something else, or answers of a run with other settings.
    """

    def __init__(self, path: Path, run: str) -> None:
        super().__init__(path, BatchAnswer.__required_keys__, "an answer of `crag batch`")
        if any(row["run"] != run for row in self.rows.values()):
            self._file.close()
            problem = (
                "holds answers of another method, other settings or other parts: use another "
                "--output, or go on with those"
            )
            raise DataError(path, problem)


def answer_all(  # noqa: PLR0913 - what a run is told
    questions: Sequence[Question],
    asking: Asking,
    answers: AnswerFile,
    *,
    budget: Budget,
    concurrency: int = 4,
    ray: str | None = None,
    again: bool = False,
    progress: Callable[[int, int, float], object] = lambda *_: None,
) -> Ended:
    """Answer what has no answer yet, `concurrency` at a time; with `again`, failures once more.

    A failure is also an answer that had to do without a part that failed.

    With `ray`, the address of a cluster, in its workers: as many as its cores, or `concurrency` of
    this machine's. `progress` receives how many are done, of how many, and what they cost.

    Raises:
        CragError: a part cannot be used, or a question ended several workers.
    """
    distinct = {asking.key(one): one for one in questions}
    done = {
        key
        for key, row in answers.rows.items()
        if key in distinct and not (again and (row["status"] == "failed" or _part_failed(row)))
    }
    failed = sum(answers.rows[key]["status"] == "failed" for key in done)
    ended = Ended(len(distinct), resumed=len(done), resumed_failed=failed)
    meter = Meter(budget)

    def on_answer(row: BatchAnswer) -> None:
        answers.append(row)
        usage = row["usage"]
        meter.calls += usage.get("llm_calls", 0)
        meter.spend(usage)
        for name, number in usage.items():
            ended.usage[name] = ended.usage.get(name, 0) + number
        ended.statuses[row["status"]] = ended.statuses.get(row["status"], 0) + 1
        ended.part_failed += _part_failed(row)
        progress(ended.resumed + sum(ended.statuses.values()), ended.questions, meter.cost or 0)

    left = [question for key, question in distinct.items() if key not in done]
    progress(ended.resumed, ended.questions, 0)
    if ray is None:
        answer = partial(answered, graph_of(asking), asking)
        running = concurrently(left, answer, on_answer, concurrency=concurrency, meter=meter)
        ended.stopped = asyncio.run(running)
    else:
        ended.stopped = on_ray(
            left, partial(_in_worker, asking), on_answer, address=ray, workers=concurrency,
            meter=meter, named=lambda question: f"question {question.id}",
        )  # fmt: skip
    return ended


def _part_failed(row: BatchAnswer) -> bool:
    return any(event["kind"] in _FAILED for event in row["events"])


def _in_worker(asking: Asking, question: Question) -> BatchAnswer:
    return event_loop().run(answered(_kept_graph(asking), asking, question))


def graph_of(asking: Asking) -> Graph:
    """Build the graph of a run, with parts of this process.

    Raises:
        CragError: a part cannot be used, or there is no index.
    """
    parts = choose_parts(Environment.of(asking.environment), index_must_exist=True)
    return graph_named(asking.method).build(parts)


_kept_graph = cache(graph_of)
"""Of a worker, from one question to the next."""


async def answered(graph: Graph, asking: Asking, question: Question) -> BatchAnswer:
    """Answer one question; a run that fails is an answer that says so."""
    settings = settings_from_text(dict(asking.settings))
    run = await run_question(graph, question.question, settings)
    return BatchAnswer(
        **run.row(question.id),
        key=asking.key(question),
        run=asking.run,
        question=question.question,
    )
