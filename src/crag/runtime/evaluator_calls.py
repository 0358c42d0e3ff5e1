"""Call evaluators: all passages in one call; a failure is an event."""

import math
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from crag.correction.scoring import LOWEST, judged_strips, strip_passage, with_title
from crag.errors import CragError
from crag.events import Event, event
from crag.parts import Evaluator, Passage, ReadingEvaluator, is_reading
from crag.reading import Reading
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import Strip, Usage

Item = TypeVar("Item")


class Judged(NamedTuple, Generic[Item]):
    """What came of each passage or strip, in order, with events and usage of the call."""

    found: list[Item]
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


def score_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Judged[float]:
    """Score `passages` against `question` in one call of the evaluator.

    Empty texts score -1.0 without a call, and so does what could not be scored, with an event.
    """
    asked = [index for index, passage in enumerate(passages) if passage.text.strip()]
    scores = [LOWEST] * len(passages)
    if not asked:
        return Judged(scores, [], Usage())
    problem: object = None
    with Attempt("evaluator") as attempt:
        found = scores_of(evaluator, question, [passages[index] for index in asked])
        for index, score in zip(asked, map(float, found), strict=True):
            scores[index] = score if math.isfinite(score) else LOWEST
        if broken := sum(not math.isfinite(score) for score in found):
            problem = f"the evaluator returned {broken} of {len(found)} scores that are no number"
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked))
    return Judged(scores, _failed(node, attempt.error or problem), usage)


def read_passages(
    evaluator: ReadingEvaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Judged[Reading]:
    """Read all `passages` in one call of the evaluator; none is found if it failed."""
    if not any(passage.text.strip() for passage in passages):
        nothing = Reading(score=LOWEST, evidence="", span=None)
        return Judged([nothing for _ in passages], [], Usage())
    readings: list[Reading] = []
    with Attempt("evaluator") as attempt:
        readings = as_many(evaluator.read(question, passages), len(passages), "evaluator")
    usage = Usage(evaluator_calls=1, evaluated_texts=len(passages))
    return Judged(readings, _failed(node, attempt.error), usage)


def filter_strips(
    evaluator: Evaluator, question: str, strips: Sequence[Strip], settings: Settings, *, node: str
) -> Judged[Strip]:
    """Score all `strips` in one call and keep the best (CRAG, Sec. 4.4).

    Unless the settings say from which score on, it is -0.5, as in the paper, or on another scale
    than from -1 to 1 the evaluator's lower threshold.
    """
    passages = [strip_passage(strip, settings) for strip in strips]
    scores, events, usage = score_passages(evaluator, question, passages, node=node)
    if "strip_threshold" not in settings.model_fields_set and not events:
        lower, upper = evaluator.thresholds["lower"], evaluator.thresholds["upper"]
        if not (LOWEST <= lower <= 0 and upper <= -LOWEST):
            settings = settings.model_copy(update={"strip_threshold": lower})
    return Judged(judged_strips(strips, scores, settings), events, usage)


def reads(evaluator: Evaluator, settings: Settings) -> TypeGuard[ReadingEvaluator]:
    """Return whether strips of this run take their scores from readings of whole passages."""
    return settings.variant.strip_scores == "in_context" and is_reading(evaluator)


def _failed(node: str, problem: object) -> list[Event]:
    """Return the event of a failure, if there was one."""
    fallback = f"texts without a score count {LOWEST}"
    return [event("evaluator_failed", node, problem, fallback)] if problem is not None else []
