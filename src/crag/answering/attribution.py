"""Attribute the sentences of an answer to strips: whose number is missing, and what none supports.

A number belongs to the sentence that it stands in or after. A sentence without a number gets that
of the strip that supports it best. Headings, tables and code are left alone, and so are the numbers
there. A sentence is not supported whose figures stand in no line about the thing that was asked.
"""

import calendar
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from operator import attrgetter
from typing import NamedTuple

from crag.answering.citations import (
    before_end,
    blanked,
    is_wordless,
    marks_in,
    without_citations,
)
from crag.answering.excerpts import NAMES_ONE, parsed_strip
from crag.answering.support import WordAttributor
from crag.correction.evidence import named_odds
from crag.events import Event, event
from crag.parts import Attributor, Passage
from crag.runtime.calls import Attempt, as_many
from crag.state import AnswerSentence, Citation, SentenceStatus
from crag.text.language import ENGLISH, language_of
from crag.text.marks import as_mark
from crag.text.sentences import split_sentences
from crag.text.words import names_in, question_words, words

_MOST_SENTENCES = 200
"""The most sentences of an answer that are attributed; those after them stay as they are."""
_MOST_JOINT = 10
"""The most sets of strips that are judged together because one sentence cites all of the set."""
_LINE = re.compile(
    r"^[^\S\n]*(?:(?P<apart>[#|].*)|(?:(?:[-*+•>]|\d{1,3}[.)])[^\S\n]+)?(?P<said>.*))",
    re.MULTILINE,
)
"""A heading or row, or what an item or a line of prose says."""
_NO_CLAIM = re.compile(r"|.*:|\W*(?:yes|no|true|false)\W*", re.IGNORECASE)
"""The line before a list, and answers such as "Yes.", which no strip has word by word."""
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


class Attributed(NamedTuple):
    """An answer whose sentences have the numbers of the strips that support them."""

    answer: str
    citations: list[Citation]
    """Those that the answer refers to, by number."""
    sentences: list[AnswerSentence]
    events: list[Event]
    is_misstated: bool = False
    """Whether a sentence has figures that its strips do not have, or not for what was asked."""
    is_judged: bool = False
    """Whether more than shared words says which sentences are supported."""


def attribute(  # noqa: PLR0913 - what is judged, and by whom
    question: str,
    answer: str,
    available: Sequence[Citation],
    attributor: Attributor | None = None,
    *,
    node: str = "generate",
    add: bool = True,
) -> Attributed:
    """Give each sentence of `answer` the numbers of the strips that support it.

    `answer` must have been validated: each of its numbers is one of `available`. What a sentence
    cites itself stays. Without an attributor, or where it fails, which is an event of `node`,
    shared words decide. With `add` off the answer stays as it is, and is only judged.
    """
    read, strips = _parsed(answer), {one["number"]: one for one in available}
    used = {number for mark in marks_in(answer) for number in mark.numbers}
    if _is_translated(question, answer, available):  # Neither words nor a reader can judge it.
        return Attributed(answer, [strips[number] for number in sorted(used)], [], [])
    best, events = _supported(question, read, available, attributor, node)
    texts = [question, *(f"{one['source']['title']} {one['text']}" for one in available)]
    told_of = _numbers("\n".join(texts)) | set(map(str, strips))  # As in "see passages 2 and 3".
    sentences, is_misstated = list[AnswerSentence](), False
    written, end = "", 0
    for sentence, number in zip(read, best, strict=True):
        cited, mark = sentence.cited, ""
        status: SentenceStatus = "cited" if number else "unsupported"
        told = [strips[one] for one in {*cited, number} - {0}]
        if number and _is_misstated(question, sentence.text, told):
            status, is_misstated = "unsupported", True
        elif add and not number and not _numbers(sentence.text) <= told_of:
            is_misstated = True  # A figure that no strip has; reflection has judged its own.
        elif number and number not in cited:
            status = "attributed"
            cited, mark = ([*cited, number], f" {as_mark(number)}") if add else (cited, "")
        written += answer[end : sentence.place]
        start, end = sentence.start + len(written) - sentence.place, sentence.place
        written += mark
        last = sentence.end + len(written) - sentence.place
        sentences.append(AnswerSentence(start=start, end=last, strips=cited, status=status))
        used.update(cited)
    citations = [citation for citation in available if citation["number"] in used]
    is_judged = is_misstated or (attributor is not None and not events)
    written += answer[end:]
    return Attributed(written, citations, sentences, events, is_misstated, is_judged)


def _is_translated(question: str, answer: str, available: Sequence[Citation]) -> bool:
    """Return whether an answer is written in another language than the strips that it cites.

    One too short to show its language is written in that of the question.
    """
    written = language_of(without_citations(answer)) or language_of(question)
    strips = language_of("\n".join(citation["text"] for citation in available))
    return bool(written and strips and written != strips)


@dataclass
class _Sentence:
    """A sentence of an answer, or a heading or row, which has no text here."""

    begins: int
    """Numbers from here on are its own, up to where the next one begins."""
    start: int
    end: int
    place: int
    """Where a number is inserted: before the punctuation that ends it."""
    text: str
    """Without numbers."""
    cited: list[int] = field(default_factory=list)


def _parsed(answer: str) -> list[_Sentence]:
    """Return the sentences of an answer that claim something, with their numbers."""
    shown, sentences = blanked(answer), list[_Sentence]()
    language = language_of(without_citations(answer)) or ENGLISH
    for line in _LINE.finditer(shown):
        first, start, last = line.start(), line.start("said"), line.end()
        own = [_Sentence(first, first, last, last, "")] if line["apart"] else []
        for piece in split_sentences(line["said"] or "", language):
            said = piece.strip()
            start = shown.index(said, max(start, first))
            end = start + len(said)
            if not is_wordless(said):
                text, place = without_citations(answer[start:end]), start + before_end(said)
                own.append(_Sentence(start if own else first, start, end, place, text))
            start = end
        sentences += own
    for mark in marks_in(answer):
        at = bisect_right(sentences, mark.bracket, key=attrgetter("begins")) - 1
        for owner in sentences[max(at, 0) : at + 1]:
            owner.cited += [number for number in mark.numbers if number not in owner.cited]
            owner.start, owner.end = min(owner.start, mark.bracket), max(owner.end, mark.end)
    return [one for one in sentences if not _NO_CLAIM.fullmatch(one.text)][:_MOST_SENTENCES]


def _supported(
    question: str,
    sentences: Sequence[_Sentence],
    available: Sequence[Citation],
    attributor: Attributor | None,
    node: str,
) -> tuple[list[int], list[Event]]:
    """Return the number of a strip that supports each sentence, or 0.

    It is one that the sentence cites, if they support it alone or together, else the best of all,
    the first of equals. All are judged in one call.
    """
    several = (tuple(sorted(one.cited)) for one in sentences if len(one.cited) > 1)
    sets = list(dict.fromkeys(several))[:_MOST_JOINT]
    passages = [Passage(citation["source"]["title"], citation["text"]) for citation in available]
    passages += [_joint(available, group) for group in sets]
    texts = [sentence.text for sentence in sentences]
    words, events = WordAttributor(), list[Event]()
    degrees, threshold = words.support(question, texts, passages), words.threshold
    if attributor is not None and texts:
        with Attempt("attributor") as attempt:
            reply = attributor.support(question, list(texts), list(passages))
            judged = as_many(reply, len(texts), "attributor")
            degrees = [as_many(row, len(passages), "attributor") for row in judged]
            threshold = attributor.threshold
        if attempt.error is not None:
            fallback = "shared words attribute the sentences"
            events.append(event("evaluator_failed", node, attempt.error, fallback))
    best = list[int]()
    for row, sentence in zip(degrees, sentences, strict=True):
        alone = dict(zip([one["number"] for one in available], row, strict=False)) | {0: -1.0}
        own, nearest = (max(some, key=alone.__getitem__) for some in ([0, *sentence.cited], alone))
        group = tuple(sorted(sentence.cited))
        together = row[len(available) + sets.index(group)] if group in sets else -1.0
        is_own = max(alone[own], together) >= threshold
        best.append(own if is_own else nearest if alone[nearest] >= threshold else 0)
    return best, events


def _joint(available: Sequence[Citation], numbers: Sequence[int]) -> Passage:
    strips = [citation for citation in available if citation["number"] in numbers]
    titles = dict.fromkeys(citation["source"]["title"] for citation in strips)
    return Passage(" ".join(titles), "\n".join(citation["text"] for citation in strips))


def _is_misstated(question: str, sentence: str, strips: Sequence[Citation]) -> bool:
    """Return whether a sentence has a figure or word that stands for nothing that was asked.

    Of each strip those parts count that have the names of the question and of the sentence, as a
    row does, and not those about another of its kind. A figure must stand in one of them; another
    word is wrong if it stands in a row or an item about something else alone, or where they say the
    opposite. A sentence that says "not" where its strip does not, or the other way round, states
    that wrongly.
    """
    parsed = [parsed_strip(one["text"], headings=[one["source"]["title"]]) for one in strips]
    places = [(one, at) for one in parsed for at in range(len(one.parts)) if at not in one.head(at)]
    pairs = [one.told(at) for one, at in places]
    named = named_odds(question, pairs)
    if min(named, default=0) > -NAMES_ONE:  # The question names none of them, the sentence may.
        named = named_odds(_FIGURE.sub("", sentence), pairs)
    own, others, stated = list[str](), list[str](), list[str]()
    for (one, at), pair, odds in zip(places, pairs, named, strict=True):
        text = one.said(at)
        has_name = one.label(at) or {*filter(str.isalpha, names_in(text))} - _DAYS_AND_MONTHS
        is_about = odds > -NAMES_ONE or (one.parts[at].kind == "sentence" and not has_name)
        (own if is_about else others).extend(pair)
        stated += [text] if is_about else []
    said, other = "\n".join(own), "\n".join(others)
    given = f"{question}\n{said}"
    astray = {*question_words(sentence)}.intersection(words(other)).difference(words(given))
    return (
        not _numbers(sentence) <= _numbers(given)
        or any(not _NUMBER.search(word) for word in astray)
        or is_turned_round(sentence, stated)
        or _is_opposed(sentence, "\n".join(stated))
    )


def _numbers(text: str) -> set[str]:
    """Return the whole numbers of a text, without what groups their digits, spelt ones too."""
    found = {number.lstrip("0") or "0" for number in _NUMBER.findall(_GROUPED.sub("", text))}
    return found | {SPELT[word] for word in text.casefold().split() if word in SPELT}


def is_turned_round(sentence: str, texts: Sequence[str]) -> bool:
    """Return whether the first of the texts that is much alike says the opposite."""
    said = {*question_words(_NEGATED.sub("", sentence))}
    for text in texts:
        own = {*question_words(_NEGATED.sub("", text))}
        alike = len(said & own) >= _SAME * max(len(said), len(own), 1)
        if alike and not _LIMITED.search(f"{sentence} {text}"):
            return bool(_NEGATED.search(sentence)) != bool(_NEGATED.search(text))
    return False


def _is_opposed(sentence: str, said: str) -> bool:
    """Return whether of a word in a sentence without a "not" the opposite alone is said."""
    stated, given = {*words(sentence)}, {*words(said)}
    pairs = (pair for both in _OPPOSITES for pair in permutations(words(both)))
    is_opposed = any(one in stated - given and other in given - stated for one, other in pairs)
    return is_opposed and not _NEGATED.search(sentence)
