"""Fit the thresholds of a reader to the questions of docs_questions.py, each corpus by the others.

Four numbers decide what becomes of a question: from which grade of the best document on the action
is Correct, below which it is Incorrect, from which score on the best quotation is sure, and from
which on it is shown as one of the closest passages. Each is fitted on five corpora, and all of them
judge the sixth.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from crag.correction.evidence import strips_in_context
from crag.correction.provenance import passage_of
from crag.evaluators.reader import ReaderEvaluator
from crag.generation.quoting import quotations_in
from crag.papers.studies.docs_questions import Outcome, outcome
from crag.papers.studies.documentation import Asked, is_right
from crag.settings import Settings

COSTS = ((2.0, 6.0), (4.0, 8.0), (6.0, 12.0))
"""What a wrong and a false answer cost, where a right one brings 1: three ways to be careful."""
SHARE_LOST = 0.02
"""Share of the answerable questions that the lower threshold may call Incorrect."""
SHARE_CORRECT = 2 / 48
"""Share of the unanswerable questions that the upper threshold may call Correct."""
SHARE_SHOWN = 20 / 48
"""Share of the unanswerable questions for which closest passages may be shown."""
_MOST = 4


class Read(NamedTuple):
    """One question with everything that thresholds decide about."""

    asked: Asked
    grade: float
    """Score of the best document."""
    score: float
    """Score of the best quotation."""
    kept: tuple[str, ...]
    """The strips kept."""
    sure: tuple[str, ...]
    """The passages of an answer, if it is sure."""
    closest: tuple[str, ...]
    """The passages that are shown if none is."""


class Numbers(NamedTuple):
    """The numbers that are fitted."""

    upper: float
    lower: float
    quote: float
    closest: float


def measured(asked: Sequence[Asked], name: str) -> dict[str, list[Outcome]]:
    """Read every question's documents once, and judge it by numbers of the other corpora."""
    reader = load(name)
    found = [read(reader, one) for one in asked]
    results: dict[str, list[Outcome]] = {}
    for costs in COSTS:
        outcomes: dict[str, Outcome] = {}
        for corpus in dict.fromkeys(one.corpus for one in asked):
            others = [one for one in found if one.asked.corpus != corpus] or found
            numbers = fitted(others, *costs)
            print(f"costs {costs}, {corpus}: {numbers}")
            outcomes |= {
                o.asked.id: concluded(o, numbers) for o in found if o.asked.corpus == corpus
            }
        print(f"costs {costs}, all: {fitted(found, *costs)}")
        results[f"reader, costs {costs[0]:g} and {costs[1]:g}"] = [outcomes[o.id] for o in asked]
    return results


def load(name: str) -> ReaderEvaluator:
    """Return the packaged reader by the name `reader`, or the one in a folder."""
    return ReaderEvaluator.packaged() if name == "reader" else ReaderEvaluator.stored(Path(name))


def read(reader: ReaderEvaluator, one: Asked) -> Read:
    """Read the documents of a question as the graph does."""
    settings = Settings()
    passages = [passage_of(document, settings.titles) for document in one.documents]
    readings = reader.read(one.question, passages)
    strips = strips_in_context(one.question, one.documents, readings, settings)
    kept = [strip for strip in strips if strip["kept"]]
    sure = quotations_in(one.question, kept, most=_MOST, threshold=-1, closest=-1)
    closest = quotations_in(one.question, kept, most=_MOST, threshold=math.inf, closest=-1)
    return Read(
        one,
        max(reading["score"] for reading in readings),
        sure[0].score if sure else -1.0,
        tuple(strip["text"] for strip in kept),
        tuple(quoted.text for quoted in sure if not quoted.further),
        tuple(quoted.text for quoted in closest),
    )


def fitted(found: Sequence[Read], wrong: float, false: float) -> Numbers:
    """Return the number that brings most for sure answers, and those of the allowed shares."""

    def gain(one: Read) -> float:
        if is_right("\n".join(one.sure), one.asked):
            return 1.0
        return -wrong if one.asked.answerable else -false

    quote = max(
        [*_between([one.score for one in found]), 1.0],
        key=lambda least: (sum(gain(one) for one in found if one.score >= least), least),
    )
    able = [one for one in found if one.asked.answerable]
    unable = [one for one in found if not one.asked.answerable]
    return Numbers(
        upper=_allowing([one.grade for one in unable], SHARE_CORRECT),
        lower=-_allowing([-one.grade for one in able], SHARE_LOST),
        quote=quote,
        closest=_allowing([one.score for one in unable], SHARE_SHOWN),
    )


def _allowing(scores: Sequence[float], share: float) -> float:
    """Return the threshold that this share of the scores, at most, reaches."""
    cuts = [*_between([*scores, 1.0]), 1.0]
    return next(cut for cut in cuts if sum(s >= cut for s in scores) <= share * len(scores))


def _between(scores: Sequence[float]) -> list[float]:
    """Return the thresholds that divide the scores, on the scale of their log-odds."""
    odds = [math.atanh(max(-1 + 1e-12, min(1 - 1e-12, score))) for score in sorted(set(scores))]
    return [math.tanh((low + high) / 2) for low, high in pairwise(odds)]


def concluded(one: Read, numbers: Numbers) -> Outcome:
    """Decide by these numbers."""
    action = "correct" if one.grade >= numbers.upper else "ambiguous"
    action = "incorrect" if one.grade < numbers.lower else action
    shown: tuple[str, ...] = ()
    answer = ""
    if action != "incorrect" and one.score >= numbers.quote:
        shown, answer = one.sure, "\n".join(one.sure)
    elif action != "incorrect" and one.score >= numbers.closest:
        shown = one.closest
    return outcome(one.asked, action, one.kept, answer, shown)
