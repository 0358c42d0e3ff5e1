"""Call evaluators: all passages in one call, what it returns validated, what it raises an event."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeGuard

from crag.correction.scoring import LOWEST, judged_strips, strip_passage, with_title
from crag.events import Event, event
from crag.parts import Evaluator, Passage, ReadingEvaluator, is_reading
from crag.reading import Reading
from crag.runtime.attempt import Attempt
from crag.runtime.replies import readings_of, scores_of_reply
from crag.settings import Settings
from crag.state import Strip, Usage

_NOTHING: Final = Reading(score=LOWEST, evidence="", span=None)


class Scored(NamedTuple):
    """Scores in the order of the passages, with usage and events of the call."""

    scores: list[float]
    events: list[Event]
    usage: Usage


class ReadPassages(NamedTuple):
    """Readings in the order of the passages, with usage and events of the call.

    There are none if the evaluator failed.
    """

    readings: list[Reading]
    events: list[Event]
    usage: Usage


def scores_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[float]:
    """Ask an evaluator for passages: as they are if it reads them, joined to strings if not."""
    if is_reading(evaluator):
        readings = readings_of(evaluator.read(question, passages), passages)
        return [reading["score"] for reading in readings]
    return evaluator.score(question, [with_title(one.title, one.text) for one in passages])


def score_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Scored:
    """Score `passages` against `question` in one call of the evaluator.

    Empty texts score -1.0 without a call. If the evaluator fails or returns invalid scores, the
    texts score -1.0 and an event is recorded, so bad scores are never used.
    """
    asked = [index for index, passage in enumerate(passages) if passage.text.strip()]
    scores = [LOWEST] * len(passages)
    if not asked:
        return Scored(scores, [], Usage())
    with Attempt("evaluator") as attempt:
        reply = scores_of(evaluator, question, [passages[i] for i in asked])
        answers = scores_of_reply(reply, len(asked))
        for index, score in zip(asked, answers, strict=True):
            scores[index] = score
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked))
    if attempt.error is not None:
        fallback = f"all {len(passages)} texts score {LOWEST}"
        return Scored(scores, [event("evaluator_failed", node, attempt.error, fallback)], usage)
    return _without_nan(scores, node, usage)


def _without_nan(scores: list[float], node: str, usage: Usage) -> Scored:
    broken = [index for index, score in enumerate(scores) if not math.isfinite(score)]
    if not broken:
        return Scored(scores, [], usage)
    for index in broken:
        scores[index] = LOWEST
    detail = f"the evaluator returned {len(broken)} of {len(scores)} scores that are not finite"
    fallback = f"these texts score {LOWEST}"
    return Scored(scores, [event("evaluator_failed", node, detail, fallback)], usage)


class Filtered(NamedTuple):
    """Scored strips, with usage and events of the call."""

    strips: list[Strip]
    events: list[Event]
    usage: Usage


def filter_strips(
    evaluator: Evaluator, question: str, strips: Sequence[Strip], settings: Settings, *, node: str
) -> Filtered:
    """Score all `strips` in one call and keep the best (CRAG, Sec. 4.4)."""
    passages = [strip_passage(strip, settings) for strip in strips]
    scores, events, usage = score_passages(evaluator, question, passages, node=node)
    return Filtered(judged_strips(strips, scores, settings), events, usage)


def reads(evaluator: Evaluator, settings: Settings) -> TypeGuard[ReadingEvaluator]:
    """Return whether strips of this run take their scores from readings of whole passages.

    Strips of the official mode `excerption` cannot be located in their document, so they are
    scored alone.
    """
    variant = settings.variant
    in_context = variant.strip_scores == "in_context" and variant.decomposition != "excerption"
    return in_context and is_reading(evaluator)


def read_passages(
    evaluator: ReadingEvaluator, question: str, passages: Sequence[Passage], *, node: str
) -> ReadPassages:
    """Read all `passages` for `question` in one call of the evaluator.

    If the evaluator fails, or returns what is not a reading, an event is recorded.
    """
    if not any(passage.text.strip() for passage in passages):
        return ReadPassages([_NOTHING.copy() for _ in passages], [], Usage())
    readings: list[Reading] = []
    with Attempt("evaluator") as attempt:
        readings = readings_of(evaluator.read(question, passages), passages)
    usage = Usage(evaluator_calls=1, evaluated_texts=len(passages))
    if attempt.error is not None:
        fallback = f"all {len(passages)} texts score {LOWEST}"
        return ReadPassages([], [event("evaluator_failed", node, attempt.error, fallback)], usage)
    return ReadPassages(readings, [], usage)
