"""Summarise rows: each variant under each condition, and differences from the baseline.

Intervals are percentile bootstrap intervals of a mean. Questions are drawn with replacement, so an
interval estimates the effect of another draw of questions, not of another model, prompt or seed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from crag.errors import SettingsError
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import ACCURACY, Experiment, Variant, without_relevant
from crag.papers.bench.runner import Row
from crag.papers.metrics import METRICS, Metric, Pairs, installed

_NO_METRICS: Mapping[str, Metric] = MappingProxyType({})
RESAMPLES = 5000
_AT_ONCE = 100
"""Resamples in memory."""
ValuesByQuestion = dict[str, float]
"""By question id, averaged over seeds."""
Group = tuple[str, tuple[tuple[str, Any], ...]]
"""A variant's name and its condition."""


class Interval(NamedTuple):
    """The middle 95 % of the resampled means."""

    low: float
    high: float


class Difference(NamedTuple):
    """The mean of the differences, question by question, and its interval."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


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


def bootstrap(values: Sequence[float], seed: int, resamples: int = RESAMPLES) -> Interval:
    """Return the interval of the mean; the same `seed` gives the same one.

    A single value gives an interval of zero width, which does not mean certainty.
    """
    if len(values) == 1:
        return Interval(values[0], values[0])
    from scipy import stats

    drawn = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=resamples, batch=_AT_ONCE,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return Interval(*map(float, drawn.confidence_interval))


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
    for (name, condition), pairs in groups.items():
        own, group = measured[name, condition], [row for _, row in pairs]
        base = measured.get((experiment.baseline, condition))
        base = base or measured.get((experiment.baseline, ()), {})
        sides = {} if name == experiment.baseline else _differences(own, base)
        gaps = {
            metric: Difference(float(np.mean(values)), *bootstrap(values, seed))
            for metric, values in sides.items()
        }
        lines.append(
            Line(
                variant=variants[name],
                condition=dict(condition),
                cells={one.name: _cell(one, own[one.name], pairs, seed) for one in metrics},
                gaps=gaps,
                paired={metric: len(values) for metric, values in sides.items()},
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

    @cache
    def seen(accuracy: float | None, seed: int) -> dict[str, Example]:
        left = examples if accuracy is None else without_relevant(examples, accuracy, seed)
        return {example.id: example for example in left}

    found: dict[Group, list[tuple[Example, Row]]] = {}
    for row in rows.values():
        accuracy = row["condition"].get(ACCURACY)
        example = seen(accuracy, 0 if accuracy is None else row["seed"]).get(row["id"])
        if example is not None:
            place = row["variant"], tuple(sorted(row["condition"].items()))
            found.setdefault(place, []).append((example, row))
    order = [variant.name for variant in experiment.variants]
    places = sorted(
        (place for place in found if place[0] in order),
        key=lambda place: (order.index(place[0]), [-value for _, value in place[1]]),
    )
    return {
        place: sorted(found[place], key=lambda pair: (pair[1]["seed"], pair[1]["id"]))
        for place in places
    }


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
        return Cell(sum(numbers) / len(numbers), *bootstrap(numbers, seed), len(numbers))
    whole = metric.summarise(pairs)
    return None if whole is None else Cell(whole, None, None, len(pairs))


def _differences(
    own: Mapping[str, ValuesByQuestion], base: Mapping[str, ValuesByQuestion]
) -> dict[str, list[float]]:
    """Return the differences of each metric: pairing removes the difficulty of each question."""
    sides = {
        name: [value - base[name][one] for one, value in values.items() if one in base[name]]
        for name, values in own.items()
        if name in base
    }
    return {name: values for name, values in sides.items() if values}
