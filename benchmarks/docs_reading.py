"""Fit the thresholds of a reader to the questions of docs_questions.py, each corpus by the others.

Three numbers decide what becomes of a question: from which grade of the best document on the action
is Correct, below which it is Incorrect, and from which score on strips are quoted. After
Correct something is always quoted. The numbers are fitted together on five corpora, to bring most
right answers less what wrong and false ones cost, and judge the sixth.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from docs_questions import Asked, Outcome, is_right, outcome

from crag.answering.outcome import quoted_text
from crag.correction.evidence import strips_in_context
from crag.correction.provenance import passage_of
from crag.evaluators.reader import ReaderEvaluator
from crag.generation import ExtractiveAnswerer
from crag.nodes.generate import best_of
from crag.settings import Settings

COSTS = ((1.0, 2.0), (1.5, 4.0), (2.0, 6.0))
"""What a wrong and a false answer cost, where a right one brings 1: three ways to be careful."""
SHARE_LOST = 0.02
"""Share of the questions with a right answer that the lower threshold may cost."""


class Read(NamedTuple):
    """One question with everything that thresholds decide about."""

    asked: Asked
    grade: float
    """Score of the best document."""
    score: float
    """Score of the best strip."""
    kept: tuple[str, ...]
    """The strips kept."""
    quoted: str
    """What is quoted from there on."""
    weakly: str
    """What is quoted after Correct, if no strip is good enough."""


class Numbers(NamedTuple):
    """The numbers that are fitted."""

    upper: float
    lower: float
    quote: float


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
    return ReaderEvaluator.packaged() if name == "reader" else ReaderEvaluator.changed(Path(name))


def read(reader: ReaderEvaluator, one: Asked) -> Read:
    """Read the documents of a question as the graph does."""
    settings = Settings()
    passages = [passage_of(document, settings.titles) for document in one.documents]
    readings = reader.read(one.question, passages)
    kept = [s for s in strips_in_context(one.documents, readings, settings) if s["kept"]]
    quotations = ExtractiveAnswerer(reader, threshold=-1.0).quote(one.question, kept)
    return Read(
        one,
        max(reading["score"] for reading in readings),
        max((quotation.score for quotation in quotations), default=-1.0),
        tuple(strip["text"] for strip in kept),
        quoted_text(quotations),
        quoted_text([best_of(kept)]),
    )


def answer(one: Read, numbers: Numbers) -> str:
    """Return what is answered at these numbers; an empty text is an abstention."""
    if one.grade < numbers.lower:
        return ""
    if one.score >= numbers.quote:
        return one.quoted
    return one.weakly if one.grade >= numbers.upper else ""


def fitted(found: Sequence[Read], wrong: float, false: float) -> Numbers:
    """Return the numbers that bring most; of equal ones those that answer least."""
    able = sorted(one.grade for one in found if is_right(one.quoted, one.asked))
    lower = able[math.floor(SHARE_LOST * len(able))]
    uppers = [*_between([one.grade for one in found]), 1.0]
    quotes = [*_between([one.score for one in found]), 1.0]
    worth = {
        (text, one.asked.id): _gain(one.asked, text, wrong, false)
        for one in found
        for text in (one.quoted, one.weakly, "")
    }
    return max(
        (Numbers(upper, lower, quote) for upper in uppers if upper > lower for quote in quotes),
        key=lambda numbers: (
            sum(worth[answer(one, numbers), one.asked.id] for one in found),
            numbers.quote,
            numbers.upper,
        ),
    )


def _between(scores: Sequence[float]) -> list[float]:
    """Return the thresholds that divide the scores, on the scale of their log-odds."""
    odds = [math.atanh(max(-1 + 1e-12, min(1 - 1e-12, score))) for score in sorted(set(scores))]
    return [math.tanh((low + high) / 2) for low, high in pairwise(odds)]


def _gain(asked: Asked, text: str, wrong: float, false: float) -> float:
    if not text:
        return 0.0
    if is_right(text, asked):
        return 1.0
    return -wrong if asked.answerable else -false


def concluded(one: Read, numbers: Numbers) -> Outcome:
    """Decide by these numbers."""
    action = "correct" if one.grade >= numbers.upper else "ambiguous"
    action = "incorrect" if one.grade < numbers.lower else action
    return outcome(one.asked, action, one.kept, answer(one, numbers))
