"""How far a text supports a sentence: by its words alone, or together with a score of an evaluator.

Embedded reflection judges IsSup by it, and answers are attributed to strips by it.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from crag.parts import Passage
from crag.reflection_tokens import without_tokens
from crag.state import Thresholds
from crag.text.sentences import sentences_of
from crag.text.untrusted import neutral

AT_THRESHOLD = 0.95
"""The degree of a score at the upper threshold; at the lower one the degree is 1 minus this."""
UNKNOWN_FIGURE = 0.5
"""The most coverage of a text with a figure that is not in the passage."""
_NARROWEST = 0.2
"""The least distance of the thresholds that is used: closer together, the curve becomes a step."""
_WORD, _DIGIT = re.compile(r"\w+"), re.compile(r"\d")
_TELLS = re.compile(r"\w{4}|\d")
"""What a word has that counts: shorter ones are mostly function words."""
_REMEMBERED = 64
"""Texts whose words are cached, since each sentence of an answer is compared with all passages."""


class WordAttributor:
    """Say how far passages support sentences by their words: without a model, within a millisecond.

    A degree is `agreement` on what a sentence adds to the question. Words tell a sentence about
    something else, but few that use a passage's words otherwise: see `ReaderAttributor`.
    """

    threshold: Final = 0.5

    def support(
        self, question: str, sentences: Sequence[str], passages: Sequence[Passage]
    ) -> list[list[float]]:
        """Return for each sentence a degree in [0, 1] for each passage."""
        return [
            [agreement(sentence, passage, question) for passage in passages]
            for sentence in sentences
        ]


def agreement(sentence: str, passage: Passage, question: str = "") -> float:
    """Return the share of a sentence's words times that of its names and figures, in [0, 1].

    That is, of those that occur in the passage or its title. Words under four letters do not count
    unless there are no others, and neither do those of the question, which a passage often puts
    otherwise. A figure that is not in the passage limits the share of words to 0.5. A name is a
    word of more than one letter with a capital, unless a sentence begins with it.
    """
    asked, known = frozenset(_words(question)), _known(passage)
    written = _WORD.findall(neutral(without_tokens(sentence)))
    words = [word.casefold() for word in written]
    long = [word for word in words if _TELLS.search(word)]
    counted = [word for word in long if word not in asked] or long or words
    if not counted:
        return 0.0
    names = [
        word.casefold()
        for place, word in enumerate(written)
        # The first of several words has a capital anyway: "Use vinegar" names nothing.
        if _DIGIT.search(word)
        or (len(word) > 1 and word[0].isupper() and (place > 0 or len(written) == 1))
    ]
    names = [name for name in names if name not in asked]
    share = sum(word in known for word in counted) / len(counted)
    if any(_DIGIT.search(word) and word not in known for word in counted):
        share = min(share, UNKNOWN_FIGURE)
    return share * (sum(name in known for name in names) / len(names) if names else 1.0)


def degree_of(score: float, thresholds: Thresholds) -> float:
    """Map a score of the evaluator to a degree in [0, 1].

    A logistic curve through 0.05 at the lower threshold, 0.5 halfway and 0.95 at the upper one:
    continuous and never falling. Thresholds that are less than 0.2 apart count as 0.2 apart.
    """
    upper, lower = thresholds["upper"], thresholds["lower"]
    half = max(upper - lower, _NARROWEST) / 2
    steepness = math.atanh(2 * AT_THRESHOLD - 1)
    return (1 + math.tanh(steepness * (score - (upper + lower) / 2) / half)) / 2


def is_quoted(text: str, passage: Passage) -> bool:
    """Return whether each sentence of `text` occurs in the passage, word by word."""
    whole = _run(passage.text)
    counted = [run for run in map(_run, sentences_of(without_tokens(text))) if run.strip()]
    return bool(counted) and all(run in whole for run in counted)


@lru_cache(maxsize=_REMEMBERED)
def _known(passage: Passage) -> frozenset[str]:
    return frozenset(_words(f"{passage.title} {passage.text}"))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(neutral(text))]


@lru_cache(maxsize=_REMEMBERED)
def _run(text: str) -> str:
    """Write the words with a space on both sides of each, so that no word is found within one."""
    return f" {' '.join(_words(text))} "
