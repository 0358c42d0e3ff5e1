"""Attribute the sentences of an answer to strips: whose number is missing, and what none supports.

A number belongs to the sentence that it stands in or after. A sentence without a number gets that
of the strip that supports it best. Headings, tables and code are left alone, and so are the numbers
there. A sentence is not supported whose figures stand in no line about the thing that was asked.
"""

import calendar
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from crag.answering.citations import before_end, is_wordless, marks_in, without_citations
from crag.answering.excerpts import NAMES_ONE, ParsedStrip, parsed_strip
from crag.answering.links import prose_and_code
from crag.answering.support import WordAttributor
from crag.correction.evidence import named_odds
from crag.events import Event, event
from crag.parts import Attributor, Passage
from crag.runtime.calls import Attempt, as_many
from crag.state import AnswerSentence, Citation, SentenceStatus
from crag.text.language import ENGLISH, language_of
from crag.text.marks import Mark, as_mark
from crag.text.sentences import split_sentences
from crag.text.words import names_in, question_words, words

_MOST_SENTENCES = 200
"""The most sentences of an answer that are attributed; those after them stay as they are."""
_MOST_JOINT = 10
"""The most sets of strips that are judged together because one sentence cites all of the set."""
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_NOT_PROSE = ("#", "|")
_ITEM = re.compile(r"\s*(?:[-*+•>]\s+|\d{1,3}[.)]\s+)?")
_VERDICT = re.compile(r"\W*(?:yes|no|true|false)\W*", re.IGNORECASE)
"""Answers such as "Yes.", which no strip contains word by word even where it supports them."""
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
    misstated: list[str]
    """Figures of sentences that their strips do not have, or not for what was asked."""


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
    read, used = _parsed(answer)
    used |= {number for sentence in read for number in sentence.cited}
    strips = {citation["number"]: citation for citation in available}
    if _is_translated(question, answer, available):  # Neither words nor a reader can judge it.
        return Attributed(answer, [strips[number] for number in sorted(used)], [], [], [])
    best, events = _supported(question, read, available, attributor, node)
    sentences, wrong = list[AnswerSentence](), list[str]()
    pieces, end, shift = list[str](), 0, 0
    for sentence, number in zip(read, best, strict=True):
        cited, mark = list(dict.fromkeys(sentence.cited)), ""
        status: SentenceStatus = "unsupported" if number is None else "cited"
        if number is not None:
            texts = [strips[one] for one in dict.fromkeys([*cited, number])]
            if figures := misstated(question, sentence.text, texts):
                status, wrong = "unsupported", [*wrong, *figures]
            elif number not in cited:
                status = "attributed"
                cited, mark = ([*cited, number], f" {as_mark(number)}") if add else (cited, "")
        pieces += [answer[end : sentence.place], mark]
        start, end = sentence.start + shift, sentence.place
        shift += len(mark)
        sentences.append(
            AnswerSentence(start=start, end=sentence.end + shift, strips=cited, status=status)
        )
        used.update(cited)
    citations = [citation for citation in available if citation["number"] in used]
    written = "".join([*pieces, answer[end:]])
    return Attributed(written, citations, sentences, events, list(dict.fromkeys(wrong)))


def _is_translated(question: str, answer: str, available: Sequence[Citation]) -> bool:
    """Return whether an answer is written in another language than the strips that it cites.

    One too short to show its language is written in that of the question.
    """
    written = language_of(without_citations(answer)) or language_of(question)
    strips = language_of("\n".join(citation["text"] for citation in available))
    return bool(written and strips and written != strips)


@dataclass
class _Sentence:
    """A sentence; offsets are those in the answer, and its numbers are within it."""

    text: str
    """Without numbers."""
    start: int
    end: int
    place: int
    """Where a number is inserted: before the punctuation that ends it."""
    cited: list[int] = field(default_factory=list)


def _parsed(answer: str) -> tuple[list[_Sentence], set[int]]:
    """Return the sentences of an answer with their numbers, and the numbers of no sentence."""
    language = language_of(without_citations(answer)) or ENGLISH
    pieces = prose_and_code(answer)  # Code of several lines is left out, in the same length.
    pieces[1::2] = ["\n" * len(code) if "\n" in code else code for code in pieces[1::2]]
    marks = list(marks_in(answer))
    places = [mark.bracket for mark in marks]
    sentences, others = list[_Sentence](), set[int]()
    for line in _LINE.finditer("".join(pieces)):
        own = marks[bisect_left(places, line.start()) : bisect_left(places, line.end())]
        is_prose = not line[0].lstrip().startswith(_NOT_PROSE) and len(sentences) < _MOST_SENTENCES
        said = _sentences_of(line, own, language) if is_prose else []
        before = sentences[-1:] if is_prose else []
        for mark in own:
            owner = ([one for one in said if one.start < mark.bracket] or said[:1] or before)[-1:]
            for sentence in owner:
                sentence.cited += mark.numbers
                sentence.start = min(sentence.start, mark.bracket)
                sentence.end = max(sentence.end, mark.end)
            others |= set() if owner else {*mark.numbers}
        for sentence in said:
            # The line before a list, and a mere yes, make no claim that a strip could support.
            if sentence.text.endswith(":") or _VERDICT.fullmatch(sentence.text):
                others.update(sentence.cited)
            else:
                sentences.append(sentence)
    return sentences, others


def _sentences_of(line: re.Match[str], marks: Sequence[Mark], language: str) -> list[_Sentence]:
    """Return the sentences of one line, as they are without marks."""
    if is_wordless(line[0]):
        return []
    cut = {place for mark in marks for place in range(mark.start, mark.end)}
    origin = [place for place in range(line.start(), line.end()) if place not in cut]
    text = "".join(line.string[place] for place in origin)
    item = _ITEM.match(text)
    at = item.end() if item else 0
    sentences: list[_Sentence] = []
    for piece in split_sentences(text[at:], language):
        said, start = piece.strip(), at + len(piece) - len(piece.lstrip())
        at += len(piece)
        if not is_wordless(said):
            end = origin[start + len(said) - 1] + 1
            place = origin[start + before_end(said) - 1] + 1
            sentences.append(_Sentence(said, origin[start], end, place))
    return sentences


def _supported(
    question: str,
    sentences: Sequence[_Sentence],
    available: Sequence[Citation],
    attributor: Attributor | None,
    node: str,
) -> tuple[list[int | None], list[Event]]:
    """Return the number of a strip that supports each sentence, or None.

    It is one that the sentence cites, if they support it alone or together, else the best of all,
    the first of equals. All are judged in one call.
    """
    cited = [tuple(sorted(set(sentence.cited))) for sentence in sentences]
    several: list[tuple[int, ...]] = [group for group in cited if len(group) > 1]
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
    best: list[int | None] = []
    numbers = [citation["number"] for citation in available]
    for row, group in zip(degrees, cited, strict=True):
        alone = dict(zip(numbers, row, strict=False))
        together = row[len(numbers) + sets.index(group)] if group in sets else 0.0
        own = max(group, key=lambda number: alone[number], default=None)
        any_strip = max(numbers, key=lambda number: alone[number], default=None)
        if own is not None and max(alone[own], together) >= threshold:
            best.append(own)
        else:
            is_supported = any_strip is not None and alone[any_strip] >= threshold
            best.append(any_strip if is_supported else None)
    return best, events


def _joint(available: Sequence[Citation], numbers: Sequence[int]) -> Passage:
    strips = [citation for citation in available if citation["number"] in numbers]
    titles = dict.fromkeys(citation["source"]["title"] for citation in strips)
    return Passage(" ".join(titles), "\n".join(citation["text"] for citation in strips))


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
