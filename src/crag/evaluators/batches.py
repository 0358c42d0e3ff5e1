"""Scores of many texts, batch by batch, and the beginning of a text as tokens."""

import re
from collections.abc import Callable, Sequence

from crag.torch_models import length_sorted_batches

CHARACTERS = 8
"""Characters of a text that are tokenised for each token that fits; English has about five."""
_SEARCHED = 1000
"""Characters before the cut in which a space is looked for."""
_GAP = re.compile(r"(?<=[^\W_\u0900-\U0010ffff]) (?=[^\W_\u0900-\U0010ffff])")
"""A space between letters or digits that no neighbour can combine with."""


def scored_in_batches(
    texts: Sequence[str], size: int, score: Callable[[list[str]], Sequence[float]]
) -> list[float]:
    """Call `score` with batches of at most `size` texts; return the scores in order of `texts`.

    Texts of like length in characters share a batch, because tokens are not known before, so
    that only one batch need be held as tokens at a time.
    """
    scores = [0.0] * len(texts)
    for batch in length_sorted_batches([len(text) for text in texts], size):
        for index, value in zip(batch, score([texts[i] for i in batch]), strict=True):
            scores[index] = value
    return scores


def first_tokens(text: str, most: int, encode: Callable[[str], list[int]]) -> list[int]:
    """Return ``encode(text)[:most]`` without encoding all of a long text.

    `encode` adds no special tokens and treats words apart, as SentencePiece and WordPiece do:
    what stands after a space never changes the tokens before it. The text is cut at such a space
    only, and more of it is taken until there are enough tokens. A character that is no Unicode
    (half of a surrogate pair) counts as a question mark.
    """
    window = max(CHARACTERS * most, 1)
    while True:
        end = _end(text, window)
        tokens = encode(text[:end].encode("utf-8", "replace").decode("utf-8"))
        if end == len(text) or len(tokens) >= most:
            return tokens[:most]
        window *= 4


def _end(text: str, window: int) -> int:
    """Return where to cut so that words and combined characters stay whole."""
    while window < len(text):
        gaps = [gap.start() for gap in _GAP.finditer(text, max(0, window - _SEARCHED), window)]
        if gaps:
            return gaps[-1]
        window *= 4
    return len(text)
