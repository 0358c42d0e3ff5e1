"""Segments as a model with the tokens would write them, for back ends without such a model."""

from crag.reflection.backend import Candidate, Probabilities, SegmentLimits
from crag.reflection.scoring import argmax
from crag.text.untrusted import neutral

NO_LOG_PROBABILITY = 0.0
"""Where no language model wrote the text, or its server tells no log-probabilities: every text has
the sequence score 1, which changes no ranking."""


def prose(text: str) -> str:
    """Return a segment's words on one line, in which nothing can pass for a token or a citation."""
    return " ".join(neutral(text).split())


def shortened(text: str, limits: SegmentLimits) -> tuple[str, bool]:
    """Return at most as many words as the segment may have tokens, and whether any were cut off.

    A word has at least one token, so a text of few enough tokens is never cut.
    """
    words = text.split()
    return " ".join(words[: limits.max_tokens]), len(words) > limits.max_tokens


def written(
    text: str,
    *,
    relevance: Probabilities | None,
    support: Probabilities | None,
    utility: Probabilities | None,
) -> str:
    """Return ``[Relevant]text[Fully supported][Utility:5]`` with the likeliest token of each."""
    after = argmax("support", support) + argmax("utility", utility)
    return argmax("relevance", relevance) + text + after


def nothing(relevance: Probabilities | None) -> Candidate:
    """Return the candidate for which no text was written; its sequence score is 0."""
    return Candidate("", relevance, None, None, NO_LOG_PROBABILITY, 0, "end")
