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


def scores_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[float]:
    """Ask an evaluator for passages: as they are if it reads them, joined to strings if not."""
    if is_reading(evaluator):
        readings = as_many(evaluator.read(question, passages), len(passages), "evaluator")
        return [reading["score"] for reading in readings]
    texts = [with_title(passage.title, passage.text) for passage in passages]
    return as_many(evaluator.score(question, texts), len(passages), "evaluator")


def judge_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Judged:
    """Score `passages`, and read them if the evaluator does, in one call.

    Empty texts score -1.0 without a call, and so does what could not be scored, with an event.
    """
    nothing = Reading(score=LOWEST, evidence="", span=None)
    scores, readings = [LOWEST] * len(passages), [nothing] * len(passages)
    asked = [place for place, passage in enumerate(passages) if passage.text.strip()]
    problem: object = None
    with Attempt("evaluator") as attempt:
        texts = [passages[place] for place in asked]
        if not is_reading(evaluator):
            readings, found = [], scores_of(evaluator, question, texts) if asked else []
        else:
            read = evaluator.read(question, texts) if asked else []
            for place, reading in zip(asked, as_many(read, len(asked), "evaluator"), strict=True):
                readings[place] = reading
            found = [readings[place]["score"] for place in asked]
        for place, score in zip(asked, map(float, found), strict=True):
            scores[place] = score if math.isfinite(score) else LOWEST
        if broken := sum(not math.isfinite(score) for score in found):
            problem = f"the evaluator returned {broken} of {len(found)} scores that are no number"
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked)) if asked else Usage()
    if (problem := attempt.error or problem) is None:
        return Judged(scores, readings, [], usage)
    fallback = f"texts without a score count {LOWEST}"
    failed = event("evaluator_failed", node, problem, fallback)
    return Judged(scores, [], [failed], usage)


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
