"""Passages as evaluators read them, and strips with the scores that they gave."""

from collections.abc import Sequence

from crag.correction.strips import FEWEST_WORDS, STRIPS_KEPT, kept_best
from crag.parts import Passage
from crag.settings import Settings
from crag.state import Strip
from crag.text.words import word_count

_TITLE_END = " // "
LOWEST = -1.0
"""The score of an empty text, of a strip under four words, and of a text that could not be scored
(official code)."""


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


def judged_strips(
    strips: Sequence[Strip], scores: Sequence[float], settings: Settings
) -> list[Strip]:
    """Score the strips, and keep the best (CRAG, Sec. 4.4)."""
    scored: list[Strip] = [
        {**strip, "score": score} for strip, score in zip(strips, scores, strict=True)
    ]
    return kept_best(scored, settings.strips_kept or STRIPS_KEPT, settings.strip_threshold)


def strip_passage(strip: Strip, settings: Settings) -> Passage:
    """Return a strip as it is scored; one that is too short to be is empty."""
    title, text = strip["source"]["title"], strip["text"]
    if word_count(text) < FEWEST_WORDS:
        return Passage("", "")
    return Passage(title if settings.variant.titles == "every_strip" else "", text)
