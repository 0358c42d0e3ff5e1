"""Score many passages in one call of the evaluator, and validate the scores."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, cast

from crag.correction.strips import FEWEST_WORDS, STRIPS_KEPT, choose
from crag.events import Event, event
from crag.parts import Evaluator, Passage, PassageEvaluator
from crag.runtime.attempt import Attempt
from crag.runtime.replies import scores_of_reply
from crag.settings import Settings
from crag.state import Strip, Usage

_TITLE_END = " // "
LOWEST = -1.0
"""The score of an empty text, of a strip under four words, and of a text that could not be scored
(official code)."""


class Scored(NamedTuple):
    """Scores in the order of the passages, with usage and events of the call."""

    scores: list[float]
    events: list[Event]
    usage: Usage


def with_title(title: str, text: str) -> str:
    """Return a passage as the one string that the paper's evaluator reads: ``title // text``."""
    return f"{title}{_TITLE_END}{text}" if title and text.strip() else text


def split_title(text: str) -> Passage:
    """Read a string that `with_title` wrote: what stands before the first `` // `` is the title.

    This is for callers of `Evaluator.score` alone. An untitled text with `` // `` in it is misread,
    so give passages wherever the title is known.
    """
    title, _, rest = text.partition(_TITLE_END)
    return Passage(title, rest) if title and rest.strip() else Passage("", text)


def joined(question: str, text: str) -> str:
    """Return the input of the paper's evaluator; ``[SEP]`` is not a token of T5."""
    return f"{question} [SEP] {text}"


def takes_passages(evaluator: Evaluator) -> bool:
    """Return whether an evaluator has `score_passages`.

    The method defined last counts: a subclass that overrides `score` alone is called by `score`.
    """
    for kind in type(evaluator).__mro__:
        defined = {"score", "score_passages"} & vars(kind).keys()
        if defined:
            return "score_passages" in defined
    return False


def scores_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[float]:
    """Ask an evaluator for passages: as they are if it takes them, joined to strings if not."""
    if takes_passages(evaluator):
        return cast("PassageEvaluator", evaluator).score_passages(question, passages)
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
    passages = [_passage_of(strip, settings) for strip in strips]
    scores, events, usage = score_passages(evaluator, question, passages, node=node)
    verdicts = choose(scores, settings.strips_kept or STRIPS_KEPT, settings.strip_threshold)
    judged: list[Strip] = [
        {**strip, "score": score, "kept": kept, "reason": reason}
        for strip, score, (kept, reason) in zip(strips, scores, verdicts, strict=True)
    ]
    return Filtered(judged, events, usage)


def _passage_of(strip: Strip, settings: Settings) -> Passage:
    """Return a strip as it is scored; one that is too short to be is empty."""
    title, text = strip["source"]["title"], strip["text"]
    if len(text.split()) < FEWEST_WORDS:
        return Passage("", "")
    if settings.titles == "every_strip":
        return Passage(title, text)
    begun = split_title(text)  # With `passage` the first strip of a document begins with the title.
    is_glued = settings.titles == "passage" and title and _words(begun.title) == _words(title)
    return begun if is_glued else Passage("", text)


def _words(text: str) -> list[str]:
    """Return what decomposition leaves of a title: it may fold white space and drop full stops."""
    return re.findall(r"\w+", text)
