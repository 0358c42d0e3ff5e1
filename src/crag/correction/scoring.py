"""Score many texts in one call of the evaluator, and validate the scores."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from crag.correction.strips import FEWEST_WORDS, choose
from crag.errors import EvaluatorError
from crag.events import Event, event
from crag.parts import Evaluator
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import Strip, Usage

LOWEST = -1.0
"""The score of an empty text, of a strip under four words, and of a text that could not be scored
(official code)."""


class Scored(NamedTuple):
    """Scores in the order of the texts, with usage and events of the call."""

    scores: list[float]
    events: list[Event]
    usage: Usage


def with_title(title: str, text: str) -> str:
    """Return the text of a titled passage as the evaluator reads it: ``title // text``."""
    return f"{title} // {text}" if title and text.strip() else text


def joined(question: str, text: str) -> str:
    """Return the input of the paper's evaluator; ``[SEP]`` is not a token of T5."""
    return f"{question} [SEP] {text}"


def score_texts(evaluator: Evaluator, question: str, texts: Sequence[str], *, node: str) -> Scored:
    """Score `texts` against `question` in one call of the evaluator.

    Empty texts score -1.0 without a call. If the evaluator fails or returns invalid scores, the
    texts score -1.0 and an event is recorded, so bad scores are never used.
    """
    asked = [index for index, text in enumerate(texts) if text.strip()]
    scores = [LOWEST] * len(texts)
    if not asked:
        return Scored(scores, [], Usage())
    with Attempt("evaluator") as attempt:
        answers = _checked(evaluator.score(question, [texts[i] for i in asked]), len(asked))
        for index, score in zip(asked, answers, strict=True):
            scores[index] = score
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked))
    if attempt.error is not None:
        fallback = f"all {len(texts)} texts score {LOWEST}"
        return Scored(scores, [event("evaluator_failed", node, attempt.error, fallback)], usage)
    return _without_nan(scores, node, usage)


def _checked(scores: Sequence[float], expected: int) -> list[float]:
    if len(scores) != expected:
        message = f"the evaluator returned {len(scores)} scores for {expected} texts"
        raise EvaluatorError(message)
    return [float(score) for score in scores]


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
    titled = settings.titles == "every_strip"
    texts = [
        with_title(strip["source"]["title"], strip["text"]) if titled else strip["text"]
        for strip in strips
    ]
    short = [len(strip["text"].split()) < FEWEST_WORDS for strip in strips]
    asked = ["" if skip else text for skip, text in zip(short, texts, strict=True)]
    scores, events, usage = score_texts(evaluator, question, asked, node=node)
    verdicts = choose(scores, settings)
    judged: list[Strip] = [
        {**strip, "score": score, "kept": kept, "reason": reason}
        for strip, score, (kept, reason) in zip(strips, scores, verdicts, strict=True)
    ]
    return Filtered(judged, events, usage)
