"""What the reader makes of the questions of docs_questions.py, at thresholds fitted elsewhere.

Each document is read once. Strips and sentences take their relevance from that reading; nothing is
scored alone. Three decisions have a number each, and the three are fitted together on the other
corpora: from which grade on the best document makes the action Correct and an answer is quoted,
how many strips are kept, and how good a quotation must be.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from docs_questions import Asked, Outcome, count_words, holds_evidence, is_right, outcome

from crag.evaluators.reader import ReaderEvaluator
from crag.quotable import completed, parts_of
from crag.reading import Passage, Reading, evidence_in
from crag.strips import decompose

WRONG_COSTS, FALSE_COSTS = 1.0, 1.0
"""What a wrong and a false answer cost, where a right one brings 1."""
MOST_WORDS = 0.44
"""Share of the words of the documents that the strips kept may have."""
DOCUMENT = 2.0
"""Weight of the log-odds of a document beside those of the evidence in a part of it."""
BEST = 0.5
"""Share of a part whose evidence counts: the half with the most of it."""
MOST_QUOTED = 3
_LEAST = 0.005


class Candidate(NamedTuple):
    """A part of a document with what its reading says of it."""

    document: int
    start: int
    end: int
    text: str
    """To be shown."""
    score: float
    """Log-odds."""


class Read(NamedTuple):
    """One question with everything that thresholds decide about."""

    asked: Asked
    grade: float
    """Log-odds of the best document."""
    strips: tuple[Candidate, ...]
    """In the order of the documents."""
    quotable: tuple[Candidate, ...]
    """Best first."""


class Choice(NamedTuple):
    """The numbers that are fitted."""

    upper: float
    """Log-odds of the best document from which on something is quoted."""
    quote: float
    """Log-odds of the best part from which on it is quoted."""
    within: float
    """Parts whose log-odds are at most this far below those of the best are quoted with it."""


def measured(asked: Sequence[Asked], name: str) -> dict[str, list[Outcome]]:
    """Read every question's documents once, and judge it by numbers of the other corpora."""
    reader = load(name)
    found = [read(reader, one) for one in asked]
    outcomes = []
    for corpus in dict.fromkeys(one.corpus for one in asked):
        others = [one for one in found if one.asked.corpus != corpus]
        strips, choice = strips_for(others), fitted(others)
        print(f"{corpus}: {strips} strips, {choice}")
        outcomes += [concluded(o, strips, choice) for o in found if o.asked.corpus == corpus]
    print(f"all: {strips_for(found)} strips, {fitted(found)}")
    print(curve(found))
    return {name: outcomes}


def load(name: str) -> ReaderEvaluator:
    """Return the packaged reader by the name `reader`, or the one in a folder."""
    return ReaderEvaluator.packaged() if name == "reader" else ReaderEvaluator.changed(Path(name))


def read(reader: ReaderEvaluator, one: Asked) -> Read:
    """Read the documents of a question."""
    passages = [
        Passage(d.metadata.get("title", ""), d.metadata.get("section", ""), d.page_content)
        for d in one.documents
    ]
    readings = reader.read(one.question, passages)
    strips, quotable = [], []
    for number, (passage, reading) in enumerate(zip(passages, readings, strict=True)):
        strips += [
            Candidate(number, start, end, text, score(reading, start, end))
            for start, end, text in strips_of(passage.text)
        ]
        parts = parts_of(passage.text)
        for index, part in enumerate(parts):
            begin, end, text = completed(passage.text, parts, index)
            value = score(reading, part.start, part.end)
            quotable.append(Candidate(number, begin, end, text, value))
    quotable.sort(key=lambda candidate: -candidate.score)
    grade = max(odds((reading["score"] + 1) / 2) for reading in readings)
    return Read(one, grade, tuple(strips), tuple(quotable))


def score(reading: Reading, start: int, end: int) -> float:
    """Return the log-odds that a part of a document answers."""
    evidence = evidence_in(reading, start, end, best=BEST)
    return odds(evidence) + DOCUMENT * odds((reading["score"] + 1) / 2)


def odds(probability: float) -> float:
    """Return log-odds, cut where they would say nothing more."""
    share = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(share / (1 - share))


def strips_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and text of each strip; strips lose nothing but white space."""
    solid = [place for place, character in enumerate(text) if not character.isspace()]
    used = 0
    for strip in decompose(text):
        size = sum(not character.isspace() for character in strip)
        yield solid[used], solid[used + size - 1] + 1, strip
        used += size


def best_strips(one: Read, most: int) -> list[str]:
    """Return the texts of the best strips, in the order of the documents."""
    ranking = sorted(range(len(one.strips)), key=lambda index: -one.strips[index].score)
    return [one.strips[index].text for index in sorted(ranking[:most])]


def strips_for(found: Sequence[Read]) -> int:
    """Return the most strips that keep within the words allowed, on the average."""
    before = sum(count_words([d.page_content for d in one.asked.documents]) for one in found)
    fitting = [
        most
        for most in range(1, 40)
        if sum(count_words(best_strips(one, most)) for one in found) <= MOST_WORDS * before
    ]
    return max(fitting, default=1)


def curve(found: Sequence[Read]) -> str:
    """Return, for numbers of strips, the questions with evidence kept and the words."""
    able = [
        one
        for one in found
        if holds_evidence("\n".join(d.page_content for d in one.asked.documents), one.asked)
    ]
    before = sum(count_words([d.page_content for d in one.asked.documents]) for one in found)
    lines = ["strips | kept | words"]
    for most in (1, 2, 3, 5, 8, 10, 12, 15, 20, 25):
        kept = sum(holds_evidence("\n".join(best_strips(one, most)), one.asked) for one in able)
        words = sum(count_words(best_strips(one, most)) for one in found)
        lines.append(f"{most} | {kept} of {len(able)} | {100 * words / before:.0f} %")
    return "\n".join(lines)


def quoted(one: Read, choice: Choice) -> str:
    """Return what is quoted, or an empty text."""
    if not one.quotable or one.grade < choice.upper or one.quotable[0].score < choice.quote:
        return ""
    return _joined(one, choice.within)


def _joined(one: Read, within: float) -> str:
    taken: list[Candidate] = []
    for candidate in one.quotable:
        if candidate.score < one.quotable[0].score - within or len(taken) == MOST_QUOTED:
            break
        if not any(_overlap(candidate, other) for other in taken):
            taken.append(candidate)
    return "\n".join(candidate.text for candidate in sorted(taken))


def _overlap(one: Candidate, other: Candidate) -> bool:
    same = one.document == other.document and one.start < other.end and other.start < one.end
    return same or one.text == other.text


def fitted(found: Sequence[Read]) -> Choice:
    """Return the numbers that bring most: right answers less what wrong and false ones cost."""
    best, most = Choice(0.0, 0.0, 0.0), -math.inf
    for within in (0.0, 0.7, 1.4, 2.5):
        right = [is_right(_joined(one, within), one.asked) for one in found]
        gains = [_gain(one.asked, ok) for one, ok in zip(found, right, strict=True)]
        uppers = [-9.0, *sorted({round(one.grade, 1) for one in found})]
        quotes = [-9.0, *sorted({round(one.quotable[0].score, 1) for one in found if one.quotable})]
        for upper, quote in product(uppers, quotes):
            gain = sum(
                value
                for one, value in zip(found, gains, strict=True)
                if one.quotable and one.grade >= upper and one.quotable[0].score >= quote
            )
            if gain > most:
                best, most = Choice(upper, quote, within), gain
    return best


def _gain(asked: Asked, right: bool) -> float:
    if right:
        return 1.0
    return -WRONG_COSTS if asked.answerable else -FALSE_COSTS


def concluded(one: Read, strips: int, choice: Choice) -> Outcome:
    """Decide by these numbers."""
    action = "correct" if one.grade >= choice.upper else "ambiguous"
    return outcome(one.asked, action, best_strips(one, strips), quoted(one, choice))
