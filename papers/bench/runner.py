"""Answer the units of an experiment, several at a time; each leaves a row, and a run goes on."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import TypedDict

from crag.answering.context import kept_strips
from crag.asking.many import JsonLines, Question, ask
from crag.correction.strips import LOWEST
from crag.errors import EvaluatorError
from crag.events import Event, EventKind
from crag.generation import ExtractiveAnswerer
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Unit
from crag.papers.bench.methods import EXAMPLE, METHODS, MISSING, ExampleRetriever, Graph
from crag.papers.bench.resources import Resources
from crag.papers.bench.verdicts import STYLES
from crag.papers.released.reflection import released_settings
from crag.papers.tasks import lines_of
from crag.parts import Parts
from crag.state import Citation, Outcome, reflected
from crag.text.untrusted import DISARMS

CONCURRENCY = 4
PART_FAILED: frozenset[EventKind] = frozenset(
    {"model_failed", "evaluator_failed", "retrieval_failed"}
)
"""Events of parts that failed: a row with one no longer measures its method."""
RowOutcome = Outcome | Literal["failed"]


class Row(TypedDict):
    """One question under one variant of a method, as plain JSON."""

    id: str
    key: str
    """Names question, documents, variant, parts, program and seed: a finished key is not run again,
    and a row of another program is not mixed with those of this one."""
    variant: str
    """Its name in the experiment; several variants share one method."""
    condition: dict[str, Any]
    """The change to the documents, such as ``{"retrieval_accuracy": 0.3}``; empty if none."""
    seed: int
    outcome: RowOutcome
    """That of the run, or `failed`; `likely` is an answer that is not sure."""
    error: str
    """Why it failed; empty otherwise."""
    answer: str
    action: str
    """Empty if the graph takes none."""
    citations: list[Citation]
    events: list[Event]
    usage: dict[str, Any]
    """Calls and tokens, those of a chat model as evaluator and those of the cache included."""
    seconds: float
    scores: list[float]
    """Scores of the documents, in their order."""
    knowledge: str
    """The text for the generator."""
    knowledge_words: int
    retrieved_holds_answer: bool | None
    """A gold answer is a substring of a document; None without gold answers or documents."""
    knowledge_holds_answer: bool | None
    retrieved: bool | None
    """Whether reflection chose to retrieve; None without reflection."""
    raw: str
    """What reflection generated, with its tokens; empty without."""


class RowFile(JsonLines):
    """The rows of one run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Row.__required_keys__, "a row of a benchmark")


class Answerer:
    """Answers units concurrently; each method's graph is compiled once."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._graphs: dict[tuple[str, str], Graph] = {}

    def key(self, unit: Unit) -> str:
        """Return the key of a unit's row."""
        return unit.key(self.resources.named(unit.variant.evaluator))

    def missing(self, unit: Unit) -> str:
        """Return what a unit needs and lacks; empty if nothing.

        Raises:
            CragError: a part that the variant names cannot be used.
        """
        parts, variant = self.resources.parts, unit.variant
        if variant.generator not in self.resources.model:
            return f"it needs the generator {variant.generator}: train it, and set CRAG_MODEL to it"
        if parts.model is None and variant.evaluator in STYLES:
            return MISSING["model"]
        missing = METHODS[variant.method].missing(parts, unit.example)
        if not missing:
            self._graph(unit)  # A part that cannot be used ends the run before anything is asked.
        return missing

    async def answer(self, unit: Unit) -> Row:
        """Return the row of a unit; a failure of a part gives a failed row."""
        method, example = METHODS[unit.variant.method], unit.example
        settings = released_settings({**method.settings, **unit.variant.settings})
        question = Question(id=example.id, question=asked_as(example))
        with _current(EXAMPLE, example), _current(_SPENDING, _Spending()) as spent:
            asked, state = await ask(self._graph(unit), question, settings)
        return self._row(unit, asked, state, spent.usage)  # type: ignore[arg-type]

    def _graph(self, unit: Unit) -> Graph:
        name = unit.variant.method, unit.variant.evaluator
        if name not in self._graphs:
            self._graphs[name] = METHODS[name[0]].build(self._parts(name[1]))
        return self._graphs[name]

    def _parts(self, evaluator: str) -> Parts:
        parts = replace(self.resources.parts, retriever=ExampleRetriever())
        if not evaluator or evaluator == self.resources.evaluator:
            return parts
        if self.resources.other is None:
            raise EvaluatorError(f"the evaluator {evaluator!r} cannot be loaded here")
        judge = self.resources.other(evaluator)
        quoter = ExtractiveAnswerer(judge) if parts.quoter is not None else None
        return replace(parts, evaluator=judge, quoter=quoter)

    def _row(
        self,
        unit: Unit,
        asked: dict[str, Any],
        state: dict[str, Any],
        spent: dict[str, int],
    ) -> Row:
        documents, reflection = state.get("documents") or [], reflected(state)
        texts = [one.page_content for one in documents]
        knowledge = _knowledge(state)
        scores = [one.metadata["score"] for one in documents if "score" in one.metadata]
        error = asked["error"] or _failure(state)
        return Row(
            id=unit.example.id,
            key=self.key(unit),
            variant=unit.variant.name,
            condition=unit.condition,
            seed=unit.seed,
            outcome="failed" if error else state.get("outcome") or "answered",
            error=error,
            answer="" if error else str(state.get("answer") or ""),
            action=str(state.get("action") or ""),
            citations=list(state.get("citations") or []),
            events=list(state.get("events") or []),
            usage={**(state.get("usage") or {}), **spent},
            seconds=asked["seconds"],
            scores=[score if isfinite(score) else LOWEST for score in scores],
            knowledge=knowledge,
            knowledge_words=len(knowledge.split()),
            retrieved_holds_answer=_holds_answer(texts, unit.example),
            knowledge_holds_answer=_holds_answer([knowledge] if state else [], unit.example),
            retrieved=_retrieved(reflection),
            raw=str(reflection.get("raw", "")),
        )


def asked_as(example: Example) -> str:
    """Return the question for a graph; for ARC with its options."""
    return "\n".join(filter(None, [example.question, lines_of(dict(example.choices))]))


def _holds_answer(texts: Sequence[str], example: Example) -> bool | None:
    """Return whether any gold answer is a substring, as the papers match; None if there is none."""
    answers = [answer for group in example.answers for answer in group if answer]
    if not answers or not texts:
        return None
    return any(answer in text for answer in answers for text in texts)


def _knowledge(state: dict[str, Any]) -> str:
    passages = reflected(state).get("passages")
    if passages is not None:
        return "\n\n".join(passage["text"] for passage in passages)
    return "\n".join(strip["text"] for strip in kept_strips(state))  # type: ignore[arg-type]


def _failure(state: dict[str, Any]) -> str:
    return "; ".join(
        f"{entry['node']}: {entry['detail']}"
        for entry in state.get("events", [])
        if entry["kind"] in PART_FAILED
    )


def _retrieved(reflection: Any) -> bool | None:
    choices = reflection.get("choices") or []
    return any(one["action"] == "retrieve" for one in choices) if reflection else None


def left_armed() -> AbstractContextManager[None]:
    """Let `neutral` return texts as they are in the ``with`` block, also in tasks started there.

    Only for comparisons with programs which do so: a text can then act as the model.
    """
    return _current(DISARMS, False)  # noqa: FBT003 - the value of a variable


class _Spending(BaseCallbackHandler):
    """Counts calls and tokens of chat models, whoever calls them."""

    def __init__(self) -> None:
        self.usage: dict[str, int] = {}
        self._lock = threading.Lock()

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self._add("llm_calls", 1)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        for generation in response.generations[0]:
            message = generation.message if isinstance(generation, ChatGeneration) else None
            used = getattr(message, "usage_metadata", None) or {}
            for name in ("input_tokens", "output_tokens"):
                self._add(name, used.get(name, 0))

    def _add(self, name: str, number: int) -> None:
        with self._lock:
            self.usage[name] = self.usage.get(name, 0) + number


_SPENDING: ContextVar[_Spending | None] = ContextVar("crag_bench_spending", default=None)
register_configure_hook(_SPENDING, inheritable=True)


@contextmanager
def _current(variable: ContextVar[Any], value: Any) -> Iterator[Any]:
    """Set a variable in the ``with`` block, also for threads and tasks started there."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


@dataclass
class RunResult:
    """How a run ended."""

    units: int = 0
    """Number of units in the whole plan."""
    resumed: int = 0
    """Finished by an earlier run."""
    answered: int = 0
    """Rows written by this one, failed ones too."""
    failed: int = 0
    """Failed rows among these."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Why a variant was not run at all, by its name."""


def run(
    units: Iterable[Unit],
    rows: RowFile,
    answerer: Answerer,
    *,
    concurrency: int = CONCURRENCY,
    progress: Callable[[int, int, str], None] | None = None,
) -> RunResult:
    """Answer the units that are not in the file yet, or whose rows failed.

    Each row is on disk before it counts as done. `progress` is called with the number of finished
    units, their total, and the name of the last variant.
    """
    todo, ended = list[Unit](), RunResult()
    for unit in units:
        ended.units += 1
        done = rows.rows.get(answerer.key(unit))
        if missing := answerer.missing(unit):
            ended.not_run[unit.variant.name] = missing
        elif done is None or done["outcome"] == "failed":
            todo.append(unit)
        else:
            ended.resumed += 1
    total = ended.resumed + len(todo)
    gate = asyncio.Semaphore(concurrency)

    async def answer(unit: Unit) -> None:
        async with gate:
            row = await answerer.answer(unit)
            rows.append(row)
        ended.answered += 1
        ended.failed += row["outcome"] == "failed"
        if progress is not None:
            progress(ended.resumed + ended.answered, total, unit.variant.name)

    async def answer_all() -> None:
        await asyncio.gather(*map(answer, todo))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(answer_all())  # In this thread, where Ctrl-C cancels it.
    else:
        with ThreadPoolExecutor(1) as pool:  # As in a notebook.
            pool.submit(asyncio.run, answer_all()).result()
    return ended
