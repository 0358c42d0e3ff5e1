"""Summarise rows: each variant under each condition, and differences from the baseline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from crag.errors import SettingsError
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Experiment, Variant
from crag.papers.bench.intervals import bootstrap
from crag.papers.bench.paired import Difference, paired_difference
from crag.papers.bench.rows import Row
from crag.papers.bench.units import ACCURACY, without_relevant
from crag.papers.metrics import METRICS, installed
from crag.papers.metrics.metric import Metric, Pairs

_NO_METRICS: Mapping[str, Metric] = MappingProxyType({})
ValuesByQuestion = dict[str, float]
"""By question id, averaged over seeds."""
Group = tuple[str, tuple[tuple[str, Any], ...]]
"""A variant's name and its condition."""


class Cell(NamedTuple):
    """The mean of a metric, with its 95 % interval if rows have values."""

    value: float
    low: float | None
    high: float | None
    questions: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One variant under one condition."""

    variant: Variant
    condition: dict[str, Any]
    cells: dict[str, Cell | None]
    """By metric; None if it applies to no row."""
    gaps: dict[str, Difference]
    """Differences from the baseline under the same condition, by metric; empty for the baseline."""
    paired: dict[str, int]
    """Number of questions with a value on both sides."""
    statuses: Counter[str]
    actions: Counter[str]
    errors: Counter[str]
    seeds: int
    rows: int


def metrics_of(experiment: Experiment, loaded: Mapping[str, Metric] = _NO_METRICS) -> list[Metric]:
    """Return the metrics of an experiment, in its order; `loaded` are metrics with models.

    If it names none: all metrics of its task whose packages and models are available.

    Raises:
        SettingsError: a name is unknown, or its metric is not for the task.
    """
    known = {**METRICS, **loaded}
    fitting = {name: one for name, one in known.items() if experiment.task in one.tasks}
    named = [("metrics", name) for name in experiment.metrics]
    named += [("paper_metric", experiment.paper_metric)] if experiment.paper_metric else []
    for field, name in named:
        if name not in fitting:
            choice = f"for the task {experiment.task} there are {', '.join(fitting)}"
            raise SettingsError(field, name, choice)
    usable = [
        name
        for name, one in fitting.items()
        if installed(one) and (name in loaded or not one.needs)
    ]
    return [fitting[name] for name in experiment.metrics or usable]


def summarise(
    experiment: Experiment,
    examples: Sequence[Example],
    rows: Mapping[str, Row],
    seed: int = 0,
    loaded: Mapping[str, Metric] = _NO_METRICS,
) -> list[Line]:
    """Return a line for each variant and condition with rows, in the experiment's order.

    `seed` is the seed of the intervals; `loaded` are metrics with models.
    """
    metrics = metrics_of(experiment, loaded)
    groups = _grouped(experiment, rows, examples)
    measured = {
        place: {metric.name: _values(metric, pairs) for metric in metrics}
        for place, pairs in groups.items()
    }
    variants = {variant.name: variant for variant in experiment.variants}
    lines = []
    for (name, condition), measured_pairs in groups.items():
        own = measured[name, condition]
        group = [row for _, row in measured_pairs]
        base = measured.get((experiment.baseline, condition)) or measured.get(
            (experiment.baseline, ()), {}
        )
        pairs = {} if name == experiment.baseline else _paired(own, base)
        lines.append(
            Line(
                variant=variants[name],
                condition=dict(condition),
                cells={
                    one.name: _cell(one, own[one.name], measured_pairs, seed) for one in metrics
                },
                gaps={metric: paired_difference(*sides, seed) for metric, sides in pairs.items()},
                paired={metric: len(first) for metric, (first, _) in pairs.items()},
                statuses=Counter(row["status"] for row in group),
                actions=Counter(row["action"] for row in group if row["action"]),
                errors=Counter(row["error"] for row in group if row["error"]),
                seeds=len({row["seed"] for row in group}),
                rows=len(group),
            )
        )
    return lines


def _grouped(
    experiment: Experiment, rows: Mapping[str, Row], examples: Sequence[Example]
) -> dict[Group, list[tuple[Example, Row]]]:
    """Return each row with its example, which has the documents of that row."""
    seen = _ExamplesByCondition(examples)
    found: dict[Group, list[tuple[Example, Row]]] = {}
    for row in rows.values():
        example = seen.by(row)
        if example is not None:
            place = row["variant"], tuple(sorted(row["condition"].items()))
            found.setdefault(place, []).append((example, row))
    order = [variant.name for variant in experiment.variants]
    places = sorted(
        (place for place in found if place[0] in order),
        key=lambda place: (order.index(place[0]), [-value for _, value in place[1]]),
    )
    return {place: sorted(found[place], key=_by_seed) for place in places}


class _ExamplesByCondition:
    """The examples under each condition and seed."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._known: dict[tuple[float | None, int], dict[str, Example]] = {}

    def by(self, row: Row) -> Example | None:
        accuracy = row["condition"].get(ACCURACY)
        place = accuracy, 0 if accuracy is None else row["seed"]
        if place not in self._known:
            seen = self._examples
            if accuracy is not None:
                seen = without_relevant(seen, accuracy, row["seed"])
            self._known[place] = {example.id: example for example in seen}
        return self._known[place].get(row["id"])


def _by_seed(pair: tuple[Example, Row]) -> tuple[int, str]:
    return pair[1]["seed"], pair[1]["id"]


def _values(metric: Metric, pairs: Pairs) -> ValuesByQuestion:
    scored: dict[str, list[float]] = {}
    for example, row in pairs:
        value = metric.score(example, row)
        if value is not None:
            scored.setdefault(row["id"], []).append(value)
    return {name: sum(values) / len(values) for name, values in scored.items()}


def _cell(metric: Metric, values: ValuesByQuestion, pairs: Pairs, seed: int) -> Cell | None:
    if values:
        numbers = list(values.values())
        low, high = bootstrap(numbers, seed)
        return Cell(sum(numbers) / len(numbers), low, high, len(numbers))
    whole = metric.summarise(pairs)
    return None if whole is None else Cell(whole, None, None, len(pairs))


def _paired(
    own: Mapping[str, ValuesByQuestion], base: Mapping[str, ValuesByQuestion]
) -> dict[str, tuple[list[float], list[float]]]:
    sides = {}
    for name, values in own.items():
        common = [one for one in values if one in base.get(name, {})]
        if common:
            sides[name] = [values[one] for one in common], [base[name][one] for one in common]
    return sides
