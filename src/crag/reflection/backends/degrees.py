"""Critiques without a model that has the tokens: from scores and words to probabilities.

A degree of 0 to 1 is spread over the grades of a group as a binomial distribution, because the
scores of Self-RAG (IsSup with weights 0, 0.5, 1; IsUse with -1 to 1) give that very degree back.
"""

import math
import re
from collections.abc import Sequence

from crag.reflection.backend import Passage, Probabilities
from crag.reflection.tokens import (
    FULLY,
    IRRELEVANT,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    UTILITY,
    without_tokens,
)
from crag.state import Thresholds
from crag.text.sentences import sentences_of
from crag.text.untrusted import neutral

AT_THRESHOLD = 0.95
"""Degree of a score at the upper threshold; at the lower one it is what this leaves of 1."""
UNKNOWN_FIGURE = 0.5
"""The most coverage of a text with a figure that the passage does not hold."""
_NARROWEST = 0.2
"""On the evaluator's scale: thresholds closer together, or equal, would make a degree a switch."""
_STEEPEST = 50.0
"""Exponents beyond this change no digit of a degree, and large ones overflow."""
_WORD = re.compile(r"\w+")
_LONG_WORD = 4


def degree_of(score: float, thresholds: Thresholds) -> float:
    """Map a score of the evaluator to a degree in (0, 1).

    A logistic curve through 0.05 at the lower threshold, 0.5 halfway and 0.95 at the upper one:
    continuous and never falling. Thresholds that are less than 0.2 apart count as 0.2 apart.
    """
    upper, lower = thresholds["upper"], thresholds["lower"]
    half = max(upper - lower, _NARROWEST) / 2
    steepness = math.log(AT_THRESHOLD / (1 - AT_THRESHOLD))
    exponent = steepness * (score - (upper + lower) / 2) / half
    return 1 / (1 + math.exp(-max(-_STEEPEST, min(_STEEPEST, exponent))))


def relevance(degree: float) -> Probabilities:
    """Return IsRel for a passage that is relevant to this degree."""
    return {IRRELEVANT: 1 - degree, RELEVANT: degree}


def support(degree: float) -> Probabilities:
    """Return IsSup: full support has the square of the degree, and s(IsSup) is the degree."""
    return _spread((NO_SUPPORT, PARTIALLY, FULLY), degree)


def utility(degree: float) -> Probabilities:
    """Return IsUse: the expected grade is 1 + 4 times the degree, s(IsUse) twice it less 1."""
    return _spread(UTILITY, degree)


def coverage(text: str, passage: Passage) -> float:
    """Return the share of the words of `text`, in [0, 1], that stand in the passage or its title.

    Words under four letters do not count unless there are no others. A figure that the passage does
    not hold caps the share at 0.5, whatever the other words say. A text without words has 0.
    """
    known = set(_words(f"{passage.title} {passage.text}"))
    words = _words(without_tokens(text))
    told = [word for word in words if _tells(word)] or words
    if not told:
        return 0.0
    share = sum(word in known for word in told) / len(told)
    strange = any(_has_digit(word) and word not in known for word in told)
    return min(share, UNKNOWN_FIGURE) if strange else share


def is_quoted(text: str, passage: Passage) -> bool:
    """Return whether each sentence of `text` stands in the passage, word by word."""
    whole = _run(passage.text)
    sentences = map(_run, sentences_of(without_tokens(text)))
    told = [sentence for sentence in sentences if sentence.strip()]
    return bool(told) and all(sentence in whole for sentence in told)


def _spread(grades: Sequence[str], degree: float) -> Probabilities:
    most = len(grades) - 1
    return {
        token: math.comb(most, grade) * degree**grade * (1 - degree) ** (most - grade)
        for grade, token in enumerate(grades)
    }


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(neutral(text))]


def _run(text: str) -> str:
    """Write the words with a space on both sides of each, so that no word is found within one."""
    return f" {' '.join(_words(text))} "


def _tells(word: str) -> bool:
    return len(word) >= _LONG_WORD or _has_digit(word)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
