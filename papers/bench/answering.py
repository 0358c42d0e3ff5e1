"""Answer one unit with the graph of its method, and record the result as a row."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite
from typing import Any

from crag.answering.context import kept_strips
from crag.correction.scoring import LOWEST
from crag.errors import EvaluatorError
from crag.generation import ExtractiveAnswerer
from crag.models.model_card import identity_of
from crag.papers.bench.armed import left_armed
from crag.papers.bench.budget import BudgetSpentError, Meter
from crag.papers.bench.current_example import ExampleRetriever, answering
from crag.papers.bench.examples import Example
from crag.papers.bench.methods import METHODS, MISSING
from crag.papers.bench.rows import Row
from crag.papers.bench.running import PART_FAILED, Graph, Run, run_question
from crag.papers.bench.tally import Tally, tallying
from crag.papers.bench.units import Unit
from crag.papers.bench.verdicts import STYLES
from crag.papers.released.reflection import released_settings
from crag.papers.tasks import lines_of
from crag.parts import Evaluator, Parts
from crag.settings import Settings
from crag.state import reflected

_KEPT = ("cited", "score", "flags", "tokens", "raw")


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
    """The hash of the source; see `crag.papers.bench.program`."""
    other: Callable[[str], Evaluator] | None = None
    """Loads the evaluators that variants name."""
    meter: Meter = field(default_factory=Meter)
    disarm: bool = True
    """Whether texts are disarmed before they enter a prompt; the papers' programs do not."""
    identify: Callable[[str], str] = field(default_factory=lambda: cache(identity_of))
    """Tells a model in a folder from another one that was there; each is looked at once."""

    def named(self, unit: Unit) -> str:
        """List everything besides the unit that its answer depends on."""
        evaluator = self.identify(unit.variant.evaluator or self.evaluator)
        prompts = self.parts.prompts.identity
        parts = [self.model, evaluator, self.web, self.identify(self.reflection), self.program]
        if prompts:
            parts.append(f"prompts {prompts}")
        if not self.disarm:
            parts.append("not disarmed")
        return " | ".join(parts)


class Answerer:
    """Answers units concurrently; each method's graph is compiled once."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._graphs: dict[tuple[str, str], Graph] = {}

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
        """Return the row of a unit; a failure of a part gives a failed row.

        Raises:
            BudgetSpentError: the budget refused a call, so the row would be invalid.
        """
        method = METHODS[unit.variant.method]
        settings = released_settings({**method.settings, **unit.variant.settings})
        graph = self._graph(unit)
        armed = nullcontext() if self.resources.disarm else left_armed()
        with armed, answering(unit.example), tallying() as tally:
            run = await run_question(graph, asked_as(unit.example), settings)
        if tally.refused:
            raise BudgetSpentError(tally.refused)
        return self._row(unit, run, settings, tally)

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

    def _row(self, unit: Unit, run: Run, settings: Settings, tally: Tally) -> Row:
        variant, example, resources, state = unit.variant, unit.example, self.resources, run.state
        knowledge = _knowledge(state, settings)
        documents = [one.page_content for one in state.get("documents") or []]
        row = run.row(example.id, _failure(state))
        row["usage"] |= tally.asked
        return Row(
            **row,
            key=unit.key(resources.named(unit)),
            variant=variant.name,
            condition=unit.condition,
            task=example.task,
            method=variant.method,
            settings=variant.settings,
            seed=unit.seed,
            model=resources.model,
            evaluator=variant.evaluator or resources.evaluator,
            scores=_scores(state),
            knowledge=knowledge,
            knowledge_words=len(knowledge.split()),
            documents_words=sum(len(text.split()) for text in documents),
            retrieved_holds_answer=holds_answer("\n".join(documents), example, documents),
            knowledge_holds_answer=holds_answer(knowledge, example, [knowledge] if state else []),
            cached=tally.cached,
            cost=resources.meter.budget.priced(row["usage"]),
            reflection=_reflection(state),
        )


def asked_as(example: Example) -> str:
    """Return the question for a graph; for ARC with its options."""
    return "\n".join(filter(None, [example.question, lines_of(dict(example.choices))]))


def holds_answer(text: str, example: Example, found: Sequence[str]) -> bool | None:
    """Return whether any gold answer is a substring, as the papers match; None if there is none."""
    answers = [answer for group in example.answers for answer in group if answer]
    if not answers or not found:
        return None
    return any(answer in text for answer in answers)


def _knowledge(state: dict[str, Any], settings: Settings) -> str:
    passages = reflected(state).get("passages")
    if passages is not None:
        return "\n\n".join(passage["text"] for passage in passages)
    return "\n".join(strip["text"] for strip in kept_strips(state, settings))  # type: ignore[arg-type]


def _failure(state: dict[str, Any]) -> str:
    return "; ".join(
        f"{entry['node']}: {entry['detail']}"
        for entry in state.get("events", [])
        if entry["kind"] in PART_FAILED  # Such a row no longer measures its method.
    )


def _reflection(state: dict[str, Any]) -> dict[str, Any] | None:
    found: Mapping[str, Any] = reflected(state)
    if not found:
        return None
    kept = {name: found[name] for name in _KEPT if name in found}
    return kept | {
        "approximation": found.get("approximation", ""),
        "retrieved": any(one["action"] == "retrieve" for one in found.get("choices") or []),
    }


def _scores(state: dict[str, Any]) -> list[float]:
    """Return the grades of the documents, if they were graded."""
    documents = state.get("documents") or []
    scores = [one.metadata["score"] for one in documents if "score" in one.metadata]
    return [score if isfinite(score) else LOWEST for score in scores]
