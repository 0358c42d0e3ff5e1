"""A shortlist by words alone, where there are more texts than an evaluator should judge."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from crag.queries import keywords

_WORD = re.compile(r"\w+")


def shortlist(question: str, texts: Sequence[str], most: int) -> list[int]:
    """Return the places of the `most` texts that share most with the question, in their order.

    A word of the question weighs the logarithm of its rarity in the texts. Where texts are equal
    the earlier one stays.
    """
    if len(texts) <= most:
        return list(range(len(texts)))
    asked = set(_words(keywords(question)))
    shared = [asked.intersection(_words(text)) for text in texts]
    seen = Counter(word for words in shared for word in words)
    weight = {word: math.log((len(texts) + 1) / count) for word, count in seen.items()}
    best = sorted(range(len(texts)), key=lambda place: -sum(weight[w] for w in shared[place]))
    return sorted(best[:most])


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
