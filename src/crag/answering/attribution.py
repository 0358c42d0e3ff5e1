"""Attribute the sentences of an answer to strips: whose number is missing, and what none supports.

A number belongs to the sentence that it stands in or after. Numbers on lines of their own, which
models set below what they wrote, move to the sentences that their strips support. A sentence
without a number gets that of the strip that supports it best. Headings, tables and code are left
alone, and so are the numbers there.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crag.answering.citations import before_end, marks_in, without_citations
from crag.answering.emptiness import is_wordless
from crag.answering.markdown import prose_and_code
from crag.answering.support import WordAttributor
from crag.events import Event, event
from crag.parts import Attributor, Passage
from crag.runtime.attempt import Attempt
from crag.runtime.evaluator_calls import as_many
from crag.state import AnswerSentence, Citation, SentenceStatus
from crag.text.language import ENGLISH, language_of
from crag.text.marks import Mark, as_mark
from crag.text.sentences import split_sentences

_MOST_SENTENCES = 200
"""The most sentences of an answer that are attributed; those after them stay as they are."""
_MOST_JOINT = 10
"""The most sets of strips that are judged together because one sentence cites all of the set."""
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_NOT_PROSE = ("#", "|")
_ITEM = re.compile(r"\s*(?:[-*+•>]\s+|\d{1,3}[.)]\s+)?")
_VERDICT = re.compile(r"\W*(?:yes|no|true|false)\W*", re.IGNORECASE)
"""Answers such as "Yes.", which no strip contains word by word even where it supports them."""


class Attributed(NamedTuple):
    """An answer whose sentences have the numbers of the strips that support them."""

    answer: str
    citations: list[Citation]
    """Those that the answer refers to, by number."""
    sentences: list[AnswerSentence]
    events: list[Event]


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
    read = _parsed(answer)
    if _is_translated(answer, available):
        return _as_cited(answer, read, available)
    support, events = _supported(question, read.sentences, available, attributor, node)
    if add:
        _move(read, support)
    statuses: list[SentenceStatus] = []
    for index, sentence in enumerate(read.sentences):
        is_supported = support.any(index)
        statuses.append("cited" if is_supported else "unsupported")
        if is_supported and not (sentence.cited or sentence.added):
            statuses[-1] = "attributed"
            sentence.added.extend([support.best(index)] if add else [])
    if add:
        answer = _with_numbers(answer, read)
    written = _parsed(answer)
    sentences = [
        AnswerSentence(
            start=one.start, end=one.end, strips=list(dict.fromkeys(one.cited)), status=status
        )
        for one, status in zip(written.sentences, statuses, strict=True)
    ]
    used = {number for one in sentences for number in one["strips"]} | written.others
    citations = [citation for citation in available if citation["number"] in used]
    return Attributed(answer, citations, sentences, events)


def unsupported_share(state: Mapping[str, Any]) -> float | None:
    """Return the share of the sentences of an answer that no strip supports; of quotations it is 0.

    None where there is no answer, and where answers have no citations.
    """
    statuses = [sentence["status"] for sentence in state.get("sentences") or []]
    if statuses:
        return statuses.count("unsupported") / len(statuses)
    is_quoted = any("quotes" in citation for citation in state.get("citations") or [])
    return 0.0 if is_quoted else None


def _is_translated(answer: str, available: Sequence[Citation]) -> bool:
    """Return whether an answer is written in another language than the strips that it cites."""
    written = language_of(without_citations(answer))
    strips = language_of("\n".join(citation["text"] for citation in available))
    return bool(written and strips and written != strips)


def _as_cited(answer: str, read: "_ParsedAnswer", available: Sequence[Citation]) -> Attributed:
    """Take the numbers of an answer as they are: neither words nor a reader can judge them."""
    used = {number for one in read.sentences for number in one.cited} | read.others
    used |= {number for loose in read.loose for number in loose.numbers}
    citations = [citation for citation in available if citation["number"] in used]
    return Attributed(answer, citations, [], [])


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
    added: list[int] = field(default_factory=list)


class _Loose(NamedTuple):
    """A line of nothing but numbers, with the line breaks before it."""

    start: int
    end: int
    numbers: list[int]
    before: int
    """How many sentences stand before it."""


class _ParsedAnswer(NamedTuple):
    """An answer, taken apart."""

    sentences: list[_Sentence]
    loose: list[_Loose]
    others: set[int]
    """Numbers where no sentence is judged, as in tables."""


def _parsed(answer: str) -> _ParsedAnswer:
    """Take an answer apart: sentences with their numbers, and lines of numbers alone."""
    language = language_of(without_citations(answer)) or ENGLISH
    read = _ParsedAnswer([], [], set())
    marks = list(marks_in(answer))
    places = [mark.bracket for mark in marks]
    end = 0
    for line in _LINE.finditer(_without_code_blocks(answer)):
        own = marks[bisect_left(places, line.start()) : bisect_left(places, line.end())]
        numbers = [number for mark in own for number in mark.numbers]
        if len(read.sentences) >= _MOST_SENTENCES or line[0].lstrip().startswith(_NOT_PROSE):
            read.others.update(numbers)
        elif own and is_wordless(line[0]):
            start = end + len(answer[end : line.start()].rstrip())
            read.loose.append(_Loose(start, line.end(), numbers, len(read.sentences)))
        else:
            _read_line(line, own, language, read)
        end = line.end()
    if not read.sentences:  # Below a table or code alone there is no sentence to move a number to.
        read.others.update(number for loose in read.loose for number in loose.numbers)
        read.loose.clear()
    return read


def _without_code_blocks(answer: str) -> str:
    """Return an answer of the same length with code of several lines blank."""
    pieces = prose_and_code(answer)
    pieces[1::2] = ["\n" * len(code) if "\n" in code else code for code in pieces[1::2]]
    return "".join(pieces)


def _read_line(
    line: re.Match[str], marks: Sequence[Mark], language: str, read: _ParsedAnswer
) -> None:
    """Add the sentences of one line, each with the numbers in it and after it."""
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
    for mark in marks:
        before = [sentence for sentence in sentences if sentence.start < mark.bracket]
        if not sentences:
            read.others.update(mark.numbers)
            continue
        owner = before[-1] if before else sentences[0]
        owner.cited.extend(mark.numbers)
        owner.start, owner.end = min(owner.start, mark.bracket), max(owner.end, mark.end)
    for sentence in sentences:
        # The line before a list, and a mere yes, make no claim that a strip could support.
        if sentence.text.endswith(":") or _VERDICT.fullmatch(sentence.text):
            read.others.update(sentence.cited)
        else:
            read.sentences.append(sentence)


def _with_numbers(answer: str, read: _ParsedAnswer) -> str:
    """Insert the numbers that were added, and take out the lines of numbers alone."""
    edits = [(loose.start, loose.end, "") for loose in read.loose]
    added = [one for one in read.sentences if one.added]
    edits += [(one.place, one.place, f" {''.join(map(as_mark, one.added))}") for one in added]
    pieces, at = [], 0
    for start, end, text in sorted(edits):
        pieces += [answer[at:start], text]
        at = end
    return "".join([*pieces, answer[at:]]).strip()


class _Support(NamedTuple):
    """How far each strip supports each sentence."""

    degrees: list[list[float]]
    """A row for each sentence, a column for each strip."""
    joint: Mapping[int, float]
    """By sentence: how far the strips that it cites support it together."""
    numbers: list[int]
    threshold: float

    def any(self, sentence: int) -> bool:
        """Return whether a strip supports a sentence, or those that it cites do together."""
        degrees = [*self.degrees[sentence], self.joint.get(sentence, 0.0)]
        return max(degrees) >= self.threshold

    def best(self, sentence: int) -> int:
        """Return the number of the strip that supports it best, the first of equals."""
        degrees = self.degrees[sentence]
        return self.numbers[degrees.index(max(degrees))]

    def of(self, sentence: int, number: int) -> float:
        """Return how far the strip of a number supports it."""
        return self.degrees[sentence][self.numbers.index(number)]

    def nearest(self, sentences: range, number: int) -> int:
        """Return the sentence that the strip of a number supports most, the last of equals."""
        return max(reversed(sentences), key=lambda index: self.of(index, number))


def _supported(
    question: str,
    sentences: Sequence[_Sentence],
    available: Sequence[Citation],
    attributor: Attributor | None,
    node: str,
) -> tuple[_Support, list[Event]]:
    """Judge all sentences by all strips in one call, and by several where they cite several."""
    numbers = [citation["number"] for citation in available]
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
    joint = {
        index: degrees[index][len(available) + sets.index(group)]
        for index, group in enumerate(cited)
        if group in sets
    }
    rows = [row[: len(available)] for row in degrees]
    return _Support(rows, joint, numbers, threshold), events


def _joint(available: Sequence[Citation], numbers: Sequence[int]) -> Passage:
    strips = [citation for citation in available if citation["number"] in numbers]
    titles = dict.fromkeys(citation["source"]["title"] for citation in strips)
    return Passage(" ".join(titles), "\n".join(citation["text"] for citation in strips))


def _move(read: _ParsedAnswer, support: _Support) -> None:
    """Give the numbers of each loose line to the sentences above it that their strips support.

    A number whose strip supports none of them goes to the sentence that it supports most, the last
    of equals. Where nothing stands above, the sentences below count.
    """
    first = last = 0
    for loose in read.loose:
        if loose.before > last:  # Or it follows another line of numbers, and is of the same block.
            first, last = last, loose.before
        block = range(first, last) or range(last, len(read.sentences))
        for number in dict.fromkeys(loose.numbers):
            supported = [i for i in block if support.of(i, number) >= support.threshold]
            for index in supported or [support.nearest(block, number)]:
                sentence = read.sentences[index]
                if number not in (*sentence.cited, *sentence.added):
                    sentence.added.append(number)
