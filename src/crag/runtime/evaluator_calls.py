"""Call evaluators: all passages in one call; a failure is an event."""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from crag.correction.scoring import LOWEST, judged_strips, strip_passage, with_title
from crag.events import Event, event
from crag.parts import Evaluator, Passage, ReadingEvaluator, is_reading
from crag.reading import Reading
from crag.runtime.attempt import Attempt
from crag.runtime.replies import as_many
from crag.settings import Settings
from crag.state import Strip, Usage


class Scored(NamedTuple):
    """Scores in the order of the passages, with usage and events of the call."""

    scores: list[float]
    events: list[Event]
    usage: Usage


class ReadPassages(NamedTuple):
    """Readings in the order of the passages; none if the evaluator failed."""

    readings: list[Reading]
    events: list[Event]
    usage: Usage


class Filtered(NamedTuple):
    """Scored strips, with usage and events of the call."""

    strips: list[Strip]
    events: list[Event]
    usage: Usage


def scores_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[float]:
    """Ask an evaluator for passages: as they are if it reads them, joined to strings if not."""
    if is_reading(evaluator):
        readings = as_many(evaluator.read(question, passages), len(passages), "evaluator")
        return [reading["score"] for reading in readings]
    texts = [with_title(passage.title, passage.text) for passage in passages]
    return as_many(evaluator.score(question, texts), len(passages), "evaluator")


def score_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Scored:
    """Score `passages` against `question` in one call of the evaluator.

    Empty texts score -1.0 without a call, and so does what could not be scored, with an event.
    """
    asked = [index for index, passage in enumerate(passages) if passage.text.strip()]
    scores = [LOWEST] * len(passages)
    if not asked:
        return Scored(scores, [], Usage())
    with Attempt("evaluator") as attempt:
        answers = scores_of(evaluator, question, [passages[index] for index in asked])
        scored = {i: float(score) for i, score in zip(asked, answers, strict=True)}
        scores = [scored.get(index, LOWEST) for index in range(len(passages))]
    problem: object = attempt.error
    broken = [index for index, score in enumerate(scores) if not math.isfinite(score)]
    if broken:
        problem = f"the evaluator returned {len(broken)} of {len(scores)} scores that are no number"
        scores = [LOWEST if index in broken else score for index, score in enumerate(scores)]
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked))
    count = len(broken) if broken else f"all {len(passages)}"
    return Scored(scores, _failed(node, problem, count), usage)


def filter_strips(
    evaluator: Evaluator, question: str, strips: Sequence[Strip], settings: Settings, *, node: str
) -> Filtered:
    """Score all `strips` in one call and keep the best (CRAG, Sec. 4.4).

    Unless the settings say from which score on, it is -0.5, as in the paper, or on another scale
    the evaluator's lower threshold.
    """
    passages = [strip_passage(strip, settings) for strip in strips]
    scores, events, usage = score_passages(evaluator, question, passages, node=node)
    if "strip_threshold" not in settings.model_fields_set and not events:
        cut = strip_threshold_of(evaluator, settings.strip_threshold)
        settings = settings.model_copy(update={"strip_threshold": cut})
    return Filtered(judged_strips(strips, scores, settings), events, usage)


def strip_threshold_of(evaluator: Evaluator, usual: float | None) -> float | None:
    """Return from which score on a strip is kept: the `usual` one on a scale from -1 to 1."""
    lower, upper = evaluator.thresholds["lower"], evaluator.thresholds["upper"]
    is_usual = usual is None or (LOWEST <= lower <= 0 and upper <= -LOWEST)
    return usual if is_usual else lower


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
    """Read all `passages` for `question` in one call of the evaluator."""
    if not any(passage.text.strip() for passage in passages):
        nothing = Reading(score=LOWEST, evidence="", span=None)
        return ReadPassages([nothing for _ in passages], [], Usage())
    readings: list[Reading] = []
    with Attempt("evaluator") as attempt:
        readings = as_many(evaluator.read(question, passages), len(passages), "evaluator")
    usage = Usage(evaluator_calls=1, evaluated_texts=len(passages))
    return ReadPassages(readings, _failed(node, attempt.error, f"all {len(passages)}"), usage)


def _failed(node: str, problem: object, count: object) -> list[Event]:
    """Return the event of a failure, if there was one."""
    fallback = f"{count} texts score {LOWEST}"
    return [event("evaluator_failed", node, problem, fallback)] if problem is not None else []
