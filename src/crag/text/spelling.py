"""Typing errors in a question, corrected by the words of the documents that were found for it.

The packaged models read words in pieces, so that a swapped letter hides what is asked: with two in
a question, hardly any of the documentation questions is still answered.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from crag.text.language import ENGLISH, language_of

if TYPE_CHECKING:
    from spellchecker import SpellChecker

FEWEST_LETTERS: Final = 5
"""Of a word that is corrected; shorter ones have too many neighbours."""
FEWEST_OCCURRENCES: Final = 200
"""In the dictionary's texts, from which on a word is taken to be meant. Below stand names, and what
is mistyped often."""
LONG: Final = 8
"""Letters of a word in which any one may be wrong or too many. In a shorter one, two have changed
places, or one is missing: Gradle is no grade, and a name is soon a letter away from a word."""
_LONGEST_ENDING = 2
"""Letters by which two forms of one word differ at their ends, such as a plural."""
_TYPED = re.compile(
    r"(?<![\w.@/\\#$%&*=<>:`'’\"“-])(?<!\w\()"
    rf"[A-Za-z][a-z]{{{FEWEST_LETTERS - 1},}}"
    r"(?![\w@/\\#$%&*=<>(\[{`'’\"”-]|[.:]\w)"
)
"""A word that is no part of a name, an address, a piece of code or a quotation."""
_WORD = re.compile(r"[^\W\d_]+")


def respelled(question: str, texts: Sequence[str]) -> str:
    """Return a question without its typing errors: swapped letters, a missing one, or a wrong one.

    A word is corrected if neither `texts` nor everyday English have it, to the nearest word of
    `texts` with the same first letter; if there is none, to one of English in which two letters
    have other places, or that has one more. Names with capitals within, code and what stands in
    quotation marks stay as they are, and so do all forms of the words of `texts`. Nothing is
    corrected without texts, or in a question that is clearly in another language. The dictionary is
    pyspellchecker's.
    """
    language = language_of(question)
    there = Counter(word.casefold() for text in texts for word in _WORD.findall(text))
    if not there or language not in {ENGLISH, ""}:
        return question
    is_english = language == ENGLISH
    return _TYPED.sub(lambda typed: _corrected(typed[0], there, is_english=is_english), question)


def _corrected(typed: str, there: Mapping[str, int], *, is_english: bool) -> str:
    word = typed.casefold()
    if word in there:
        return typed
    english = _english()
    if english[word] >= FEWEST_OCCURRENCES:
        return typed
    near = [known_word for known_word in english.edit_distance_1(word) if known_word[0] == word[0]]
    if any(known_word in there and _are_forms(known_word, word) for known_word in near):
        return typed
    likely = [known_word for known_word in near if _is_likely(known_word, word)]
    is_long = len(word) >= LONG and not english[word]
    if english[word]:  # A rare word is meant, but for one slip of the fingers.
        likely = [known_word for known_word in likely if len(known_word) == len(word)]
    known = {one: there[one] for one in (near if is_long else likely) if there[one]}
    if not known and is_english:
        known = {one: english[one] for one in likely if english[one] >= FEWEST_OCCURRENCES}
    best = max(known, key=lambda one: (one in likely, known[one], one), default=word)
    return best.capitalize() if typed[0].isupper() else best


def _are_forms(word: str, other: str) -> bool:
    """Return whether two words differ in an ending only."""
    short, long = sorted((word, other), key=len)
    return long.startswith(short) and 0 < len(long) - len(short) <= _LONGEST_ENDING


def _is_likely(meant: str, typed: str) -> bool:
    """Return whether two letters changed places, or one is missing; the rest is often a name."""
    if len(meant) == len(typed):
        return sorted(meant) == sorted(typed)
    return len(meant) > len(typed)


@cache
def _english() -> "SpellChecker":
    """Load the dictionary: a sixth of a second."""
    from spellchecker import SpellChecker

    return SpellChecker(language="en", distance=1)
