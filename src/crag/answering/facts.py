"""Whether what a sentence states stands in its strips, where they are about what was asked.

A small model takes the value of another row, or turns a sentence round. Words alone do not tell:
the strip that it cites has the value too, of something else.
"""

import calendar
import re
from collections.abc import Sequence
from itertools import permutations

from crag.answering.excerpts import NAMES_ONE, ParsedStrip, parsed_strip
from crag.correction.naming import named_odds
from crag.state import Citation
from crag.text.words import names_in, question_words, words

_DAYS_AND_MONTHS = frozenset([*calendar.day_name, *calendar.month_name])
"""No names of things."""
_NUMBER = re.compile(r"\d+")
_FIGURE = re.compile(r"\S*\d\S*")
_GROUPED = re.compile(r"(?<=\d)[.,'’\s](?=\d{3}(?!\d))")
SPELT = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
"""Numbers in words, as people write small ones."""
_NEGATED = re.compile(r"\b(?:not|no|never|cannot|nor|neither|none)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITES = (
    "open closed", "allowed forbidden", "permitted prohibited", "enabled disabled",
    "included excluded",
)  # fmt: skip
"""Words of which one says "not" of the other."""
_LIMITED = re.compile(
    r"\b(?:but|only|unless|except|until|without|more|less|fewer|than|if|however|though)\b",
    re.IGNORECASE,
)
"""With these a sentence may be turned round and say the same."""
_SAME = 0.75
"""Share of the words of two sentences that say the same of something, or the opposite."""


def misstated(question: str, sentence: str, strips: Sequence[Citation]) -> list[str]:
    """Return the figures and words of a sentence that stand for nothing that was asked.

    Of each strip those parts count that have the names of the question and of the sentence, as a
    row does, and not those about another of its kind. A figure must stand in one of them; another
    word is wrong if it stands in a row or an item about something else alone, or where they say the
    opposite. A sentence that says "not" where its strip does not, or the other way round, states
    that wrongly.
    """
    parsed = [parsed_strip(one["text"], headings=[one["source"]["title"]]) for one in strips]
    places = [(one, at) for one in parsed for at in range(len(one.parts)) if at not in one.head(at)]
    labels = [_label(one, at) for one, at in places]
    texts = [one.said(at) for one, at in places]
    pairs = list(zip(labels, texts, strict=True))
    named = named_odds(question, pairs)
    if min(named, default=0) > -NAMES_ONE:  # The question names none of them, the sentence may.
        named = named_odds(_FIGURE.sub("", sentence), pairs)
    own, others, stated = list[str](), list[str](), list[str]()
    for (one, at), label, text, odds in zip(places, labels, texts, named, strict=True):
        names = {*filter(str.isalpha, names_in(text))} - _DAYS_AND_MONTHS
        has_name = one.label(at) or names
        is_about = odds > -NAMES_ONE or (one.parts[at].kind == "sentence" and not has_name)
        (own if is_about else others).append(f"{label}\n{text}")
        stated += [text] if is_about else []
    said, other = "\n".join(own), "\n".join(others)
    given = _numbers(f"{question}\n{said}")
    wrong = [figure for figure in _numbers(sentence) if figure not in given]
    held, elsewhere = {*words(f"{question}\n{said}")}, {*words(other)}
    wrong += [
        word
        for word in question_words(sentence)
        if word in elsewhere and word not in held and not _NUMBER.search(word)
    ]
    return [
        *dict.fromkeys(wrong),
        *(turned_round(sentence, stated) or _opposed(sentence, "\n".join(stated))),
    ]


def _label(parsed: ParsedStrip, at: int) -> str:
    return "\n".join([*parsed.headings[at], *map(parsed.said, parsed.head(at)), parsed.label(at)])


def _numbers(text: str) -> list[str]:
    """Return the whole numbers of a text, without what groups their digits, spelt ones too."""
    found = [number.lstrip("0") or "0" for number in _NUMBER.findall(_GROUPED.sub("", text))]
    return [*found, *(SPELT[word] for word in text.casefold().split() if word in SPELT)]


def turned_round(sentence: str, texts: Sequence[str]) -> list[str]:
    """Return "not" if the nearest of the texts, which is much alike, says the opposite."""
    said = {*question_words(_NEGATED.sub("", sentence))}
    for text in texts:
        own = {*question_words(_NEGATED.sub("", text))}
        alike = len(said & own) >= _SAME * max(len(said), len(own), 1)
        if alike and not _LIMITED.search(f"{sentence} {text}"):
            return ["not"] if bool(_NEGATED.search(sentence)) != bool(_NEGATED.search(text)) else []
    return []


def _opposed(sentence: str, said: str) -> list[str]:
    """Return the words of a sentence without a "not" of which the opposite alone is said."""
    stated, given = {*words(sentence)}, {*words(said)}
    if _NEGATED.search(sentence):
        return []
    pairs = (pair for both in _OPPOSITES for pair in permutations(words(both)))
    return [one for one, other in pairs if one in stated - given and other in given - stated]
