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
from crag.papers.metrics import METRICS, Metric, Pairs

_NO_METRICS: Mapping[str, Metric] = MappingProxyType({})
RESAMPLES = 5000
_AT_ONCE = 100
"""Resamples in memory."""
ValuesByQuestion = dict[str, float]
"""By question id, averaged over seeds."""
Group = tuple[str, tuple[tuple[str, Any], ...]]
"""A variant's name and its condition."""


class Cell(NamedTuple):
    """A mean over questions, of a metric or of its differences, with its 95 % interval."""

    value: float
    low: float | None
    """None where rows have no values of their own."""
    high: float | None
    questions: int

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return None not in {self.low, self.high} and not (self.low or 0) <= 0 <= (self.high or 0)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One variant under one condition."""

    variant: Variant
    condition: dict[str, Any]
    cells: dict[str, Cell | None]
    """By metric; None if it applies to no row."""
    gaps: dict[str, Cell]
    """Differences from the baseline under the same condition, by metric; empty for the baseline."""
    rows: Sequence[Row]

    def counts(self, field: str) -> Counter[str]:
        """Count the values of one field of the rows."""
        return Counter(str(row[field]) for row in self.rows if row[field])  # type: ignore[literal-required]


def bootstrap(
    values: Sequence[float], seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the interval of the mean; the same `seed` gives the same one.

    A single value gives an interval of zero width, which does not mean certainty.
    """
    if len(values) == 1:
        return values[0], values[0]
    from scipy import stats

    drawn = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=resamples, batch=_AT_ONCE,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    low, high = drawn.confidence_interval
    return float(low), float(high)


def metrics_of(experiment: Experiment, loaded: Mapping[str, Metric] = _NO_METRICS) -> list[Metric]:
    """Return the metrics of an experiment, in its order; `loaded` are metrics with models.

    If it names none: all metrics of its task whose models are available.

    Raises:
        SettingsError: a name is unknown, or its metric is not for the task.
    """
    known = {**METRICS, **loaded}
    fitting = {name: one for name, one in known.items() if experiment.task in one.tasks}
    for name in filter(None, (*experiment.metrics, experiment.paper_metric)):
        if name not in fitting:
            choice = f"for the task {experiment.task} there are {', '.join(fitting)}"
            raise SettingsError("metrics", name, choice)
    usable = [name for name, one in fitting.items() if name in loaded or not one.needs]
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
        own = measured[name, condition]
        base = measured.get((experiment.baseline, condition))
        base = base or measured.get((experiment.baseline, ()), {})
        compared = {} if name == experiment.baseline else base
        found = {metric: _gap(own[metric], values, seed) for metric, values in compared.items()}
        lines.append(
            Line(
                variant=variants[name],
                condition=dict(condition),
                cells={one.name: _cell(one, own[one.name], pairs, seed) for one in metrics},
                gaps={metric: gap for metric, gap in found.items() if gap is not None},
                rows=[row for _, row in pairs],
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


def _mean(values: Sequence[float], seed: int) -> Cell:
    return Cell(float(np.mean(values)), *bootstrap(values, seed), len(values))


def _cell(metric: Metric, values: ValuesByQuestion, pairs: Pairs, seed: int) -> Cell | None:
    if values:
        return _mean(list(values.values()), seed)
    whole = metric.summarise(pairs)
    return None if whole is None else Cell(whole, None, None, len(pairs))


def _gap(own: ValuesByQuestion, base: ValuesByQuestion, seed: int) -> Cell | None:
    """Return the differences of a metric: pairing removes the difficulty of each question."""
    sides = [value - base[one] for one, value in own.items() if one in base]
    return _mean(sides, seed) if sides else None
