"""Call evaluators: all passages in one call; a failure is an event."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from crag.correction.scoring import LOWEST, judged_strips, strip_passage, with_title
from crag.errors import CragError
from crag.events import Event, event
from crag.parts import Evaluator, Passage, is_reading
from crag.reading import Reading
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import Strip, Usage

Item = TypeVar("Item")


class Judged(NamedTuple):
    """What came of passages, in order, with events and usage of the call."""

    scores: list[float]
    readings: list[Reading]
    """Those of an evaluator that reads; none after a failure."""
    events: list[Event]
    usage: Usage


def as_many(found: Iterable[Item], expected: int, part: str) -> list[Item]:
    """Return what a part returned, one for each of the `expected` inputs.

    Raises:
        CragError: it returned more or fewer.
    """
    items = list(found)
    if len(items) != expected:
        raise CragError(f"the {part} returned {len(items)} results for {expected} inputs")
    return items


def readings_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[Reading]:
    """Ask an evaluator for passages, all in one call; one that does not read only gives scores."""
    if not passages:
        return []
    if is_reading(evaluator):
        return as_many(evaluator.read(question, passages), len(passages), "evaluator")
    texts = [with_title(passage.title, passage.text) for passage in passages]
    scores = as_many(evaluator.score(question, texts), len(passages), "evaluator")
    return [Reading(score=float(score), evidence="", span=None) for score in scores]


def judge_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Judged:
    """Score `passages`, and read them if the evaluator does, in one call.

    Empty texts score -1.0 without a call, and so does what could not be scored, with an event.
    """
    readings = [Reading(score=LOWEST, evidence="", span=None)] * len(passages)
    asked = [place for place, passage in enumerate(passages) if passage.text.strip()]
    problem: object = None
    with Attempt("evaluator") as attempt:
        found = readings_of(evaluator, question, [passages[place] for place in asked])
        for place, reading in zip(asked, found, strict=True):
            if math.isfinite(reading["score"]):
                readings[place] = reading
            else:
                problem = "the evaluator returned a score that is no number"
    scores = [reading["score"] for reading in readings]
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked)) if asked else Usage()
    if (problem := attempt.error or problem) is None:
        return Judged(scores, readings if is_reading(evaluator) else [], [], usage)
    fallback = f"texts without a score count {LOWEST}"
    return Judged(scores, [], [event("evaluator_failed", node, problem, fallback)], usage)


def filter_strips(
    evaluator: Evaluator, question: str, strips: Sequence[Strip], settings: Settings, *, node: str
) -> tuple[list[Strip], list[Event], Usage]:
    """Score all `strips` in one call and keep the best (CRAG, Sec. 4.4).

    Unless the settings say from which score on, it is -0.5, as in the paper, or on another scale
    than from -1 to 1 the evaluator's lower threshold.
    """
    passages = [strip_passage(strip, settings) for strip in strips]
    scores, _, events, usage = judge_passages(evaluator, question, passages, node=node)
    if "strip_threshold" not in settings.model_fields_set and not events:
        lower, upper = evaluator.thresholds["lower"], evaluator.thresholds["upper"]
        if not (LOWEST <= lower <= 0 and upper <= -LOWEST):
            settings = settings.model_copy(update={"strip_threshold": lower})
    return judged_strips(strips, scores, settings), events, usage
