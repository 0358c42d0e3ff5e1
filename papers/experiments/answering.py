"""Answer one unit with the graph of its method, and record the result as a row."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from crag.answering.attribution import unsupported_share
from crag.answering.context import kept_strips
from crag.asking.budget import BudgetSpentError, Meter, Tally, tallying
from crag.asking.lines import Status
from crag.correction.scoring import LOWEST
from crag.errors import EvaluatorError
from crag.events import redact
from crag.generation import ExtractiveAnswerer
from crag.papers.experiments.current_example import ExampleRetriever, answering
from crag.papers.experiments.examples import Example
from crag.papers.experiments.methods import METHODS, Graph
from crag.papers.experiments.rows import CitedText, Row
from crag.papers.experiments.units import Unit
from crag.parts import Evaluator, Parts
from crag.runtime.attempt import Attempt
from crag.settings import Settings, settings_from_text
from crag.tasks import written

_FAILURES = {"model_failed", "evaluator_failed", "retrieval_failed"}
"""Events that make a row a failed one, because it no longer measures its method."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources that all methods share."""

    parts: Parts
    """The retriever is replaced by the documents of each example."""
    model: str
    """The generator, as reports name it."""
    evaluator: str = "default"
    web: str = ""
    """The search service, as reports name it; empty if there is none."""
    reflection: str = ""
    """The reflection back end, as reports name it."""
    program: str = ""
    """The hash of the source; see `crag.papers.experiments.program`."""
    other: Callable[[str], Evaluator] | None = None
    """Loads the evaluators that variants name."""
    meter: Meter = field(default_factory=Meter)

    def named(self, unit: Unit) -> str:
        """List everything besides the unit that its answer depends on."""
        evaluator = unit.variant.evaluator or self.evaluator
        prompts = self.parts.prompts.identity
        parts = [self.model, evaluator, self.web, self.reflection, self.program]
        if prompts:
            parts.append(f"prompts {prompts}")
        return " | ".join(parts)


class Answerer:
    """Answers units concurrently; each method's graph is compiled once."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._graphs: dict[tuple[str, str], Graph] = {}

    def missing(self, unit: Unit) -> str:
        """Return what a unit needs and lacks; empty if nothing."""
        return METHODS[unit.variant.method].missing(self.resources.parts, unit.example)

    async def answer(self, unit: Unit) -> Row:
        """Return the row of a unit; a failure of a part gives a failed row.

        Raises:
            BudgetSpentError: the budget refused a call, so the row would be invalid.
        """
        method = METHODS[unit.variant.method]
        state: dict[str, Any] = {}
        settings = settings_from_text({**method.settings, **unit.variant.settings})
        graph = self._graph(unit)
        start = time.perf_counter()
        with answering(unit.example), tallying() as tally:
            with Attempt("run") as attempt:
                asked = {"question": asked_as(unit.example)}
                state = await graph.ainvoke(asked, context=settings)
            seconds = time.perf_counter() - start
        if tally.refused:
            raise BudgetSpentError(tally.refused)
        told = f"{type(attempt.error).__name__}: {attempt.error}" if attempt.error else ""
        error = redact(told) or _failure(state)
        return self._row(unit, state, settings, tally, error=error, seconds=seconds)

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

    def _row(  # noqa: PLR0913 - what came of one unit
        self,
        unit: Unit,
        state: dict[str, Any],
        settings: Settings,
        tally: Tally,
        *,
        error: str,
        seconds: float,
    ) -> Row:
        variant, example, resources = unit.variant, unit.example, self.resources
        knowledge, usage = _knowledge(state, settings), {**state.get("usage", {}), **tally.asked}
        documents = [one.page_content for one in state.get("documents") or []]
        return Row(
            key=unit.key(resources.named(unit)),
            variant=variant.name,
            condition=unit.condition,
            id=example.id,
            task=example.task,
            method=variant.method,
            settings=variant.settings,
            seed=unit.seed,
            model=resources.model,
            evaluator=variant.evaluator or resources.evaluator,
            status=_status(state, error),
            error=error,
            answer="" if error else str(state.get("answer", "")),
            action=state.get("action") or "",
            scores=[score if isfinite(score) else LOWEST for score in state.get("scores") or []],
            knowledge=knowledge,
            citations=_citations(state),
            knowledge_words=len(knowledge.split()),
            documents_words=sum(len(text.split()) for text in documents),
            retrieved_holds_answer=holds_answer("\n".join(documents), example, documents),
            knowledge_holds_answer=holds_answer(knowledge, example, [knowledge] if state else []),
            events=[entry["kind"] for entry in state.get("events", [])],
            usage=usage,
            cached=tally.cached,
            seconds=round(seconds, 3),
            cost=resources.meter.budget.priced(usage),
            reflection=_reflection(state),
            unsupported=unsupported_share(state),
        )


def asked_as(example: Example) -> str:
    """Return the question for a graph; for ARC with lettered options."""
    return "\n".join(filter(None, [example.question, written(dict(example.choices))]))


def holds_answer(text: str, example: Example, found: Sequence[str]) -> bool | None:
    """Return whether any gold answer is a substring, as the papers match; None if there is none."""
    answers = [answer for group in example.answers for answer in group if answer]
    if not answers or not found:
        return None
    return any(answer in text for answer in answers)


def _knowledge(state: dict[str, Any], settings: Settings) -> str:
    if state.get("passages") is not None:
        return str(state.get("knowledge", ""))
    return "\n".join(strip["text"] for strip in kept_strips(state, settings))  # type: ignore[arg-type]


def _citations(state: dict[str, Any]) -> list[CitedText]:
    return [
        CitedText(number=one["number"], title=one["source"]["title"], text=one["text"])
        for one in state.get("citations") or []
    ]


def _status(state: dict[str, Any], error: str) -> Status:
    if error:
        return "failed"
    return "abstained" if state.get("abstained") else "answered"


def _failure(state: dict[str, Any]) -> str:
    return "; ".join(
        f"{entry['node']}: {entry['detail']}"
        for entry in state.get("events", [])
        if entry["kind"] in _FAILURES
    )


def _reflection(state: dict[str, Any]) -> dict[str, Any] | None:
    found, choices = state.get("reflection") or {}, state.get("choices")
    if not found and not choices:
        return None
    kept = {name: found[name] for name in ("cited", "score", "flags", "tokens") if name in found}
    return kept | {
        "approximation": state.get("approximation", ""),
        "retrieved": any(choice["action"] == "retrieve" for choice in choices or []),
    }
