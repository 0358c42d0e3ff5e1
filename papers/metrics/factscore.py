"""FActScore for biographies: the share of atomic facts that a source supports (FActScore, Sec. 3).

The published package `factscore` had its last release in 2023 and requires torch 1 and the first
OpenAI client, so it cannot be installed with this project, and the models of its numbers are
retired. This module has its arithmetic, with your own judge or the one in
`fact_judge.py`. Compare `init_score` with both papers: they used version 0.1.5,
without the penalty for short answers.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from crag.papers.bench.examples import Example, TaskName
from crag.papers.metrics.metric import Row, RowMetric
from crag.text.marks import without_marks

GAMMA = 10
"""Facts below which the penalised score falls (version 0.1.6 and later)."""
_TASKS: frozenset[TaskName] = frozenset({"biography"})


class FactJudge(Protocol):
    """Splits an answer into facts and checks them."""

    def facts(self, answer: str) -> Sequence[str] | None:
        """Return the atomic facts of an answer, empty if it declines; None if unknown."""
        ...

    def supported(self, topic: str, facts: Sequence[str]) -> Sequence[bool | None]:
        """Return for each fact whether the source about `topic` supports it; None if unknown."""
        ...


class FactScore(NamedTuple):
    """The score of one answer."""

    init_score: float
    """The share of facts that are supported."""
    score: float
    """The same, times ``exp(1 - 10 / n)`` for fewer than ten facts."""
    facts: int


def factscore(topic: str, answer: str, judge: FactJudge) -> FactScore | None:
    """Score one answer; None if it states nothing, since the mean excludes abstentions.

    Also None if the judge cannot split it into facts, or cannot judge one of them. Citations are
    removed first: both papers judge texts without any.
    """
    answer = without_marks(answer)
    facts = judge.facts(answer) if answer.strip() else None
    told = judge.supported(topic, facts) if facts else None
    if not facts or not told or None in told:
        return None
    share = sum(map(bool, told)) / len(facts)
    penalty = math.exp(1 - GAMMA / len(facts)) if len(facts) < GAMMA else 1.0
    return FactScore(share, share * penalty, len(facts))


def factscore_metrics(judge: FactJudge | None = None) -> tuple[RowMetric, RowMetric, RowMetric]:
    """Return `init_score`, the penalised `factscore` and the number of `facts`, by `judge`.

    Each answer is judged once for all three. Without a judge they have no values.
    """
    judged: dict[tuple[str, str], FactScore | None] = {}

    def scored(example: Example, row: Row) -> FactScore | None:
        topic, answer = str(example.extra.get("topic") or ""), str(row["answer"])
        if judge is None or not topic or row["status"] != "answered":
            return None
        if (topic, answer) not in judged:
            judged[topic, answer] = factscore(topic, answer, judge)
        return judged[topic, answer]

    def of(field: str) -> Callable[[Example, Row], float | None]:
        def compute(example: Example, row: Row) -> float | None:
            found = scored(example, row)
            return None if found is None else float(getattr(found, field))

        return compute

    metric = partial(RowMetric, tasks=_TASKS, needs="--fact-judge")
    return (
        metric(name="init_score", compute=of("init_score")),
        metric(name="factscore", compute=of("score")),
        metric(name="facts", compute=of("facts"), direction="neither", unit="count"),
    )
