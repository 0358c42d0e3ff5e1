"""What the reader makes of the questions of docs_questions.py, at thresholds fitted elsewhere.

Each document is read once. Strips and sentences take their relevance from that reading; nothing is
scored alone. Three decisions have a number each, and the three are fitted together on the other
corpora: from which grade on the best document makes the action Correct and an answer is quoted,
how many strips are kept, and how good a quotation must be.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from docs_questions import Asked, Outcome, count_words, holds_evidence, is_right, outcome

from crag.correction.strips import decompose
from crag.evaluators.reader import ReaderEvaluator
from crag.parts import Passage
from crag.reading import Reading, evidence_in

COSTS = ((1.0, 2.0), (1.5, 4.0), (2.0, 6.0))
"""What a wrong and a false answer cost, where a right one brings 1: three ways to be careful."""
MOST_WORDS = 0.44
"""Share of the words of the documents that the strips kept may have."""
QUOTED = 3
"""Strips that are quoted at most."""
BEST = 0.5
"""Share of a strip whose evidence counts: the half with the most of it."""
KEPT = (1.0, 0.5, 0.5)
"""For keeping: weights of a document's log-odds, of its place in the retrieval, and how much less
than its own the evidence of the next strip counts."""
SERVED = (2.0, 0.4, math.inf)
"""The same for quoting, where the next strip does not count."""
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
    """Best first, for keeping."""
    quotable: tuple[Candidate, ...]
    """Best first, for quoting."""


class Choice(NamedTuple):
    """The numbers that are fitted."""

    words: float
    """Share of the documents' words that the strips kept have at most."""
    upper: float
    """Log-odds of the best document from which on the action is Correct."""
    quote: float
    """Value of the best strip from which on strips are quoted."""


def measured(asked: Sequence[Asked], name: str) -> dict[str, list[Outcome]]:
    """Read every question's documents once, and judge it by numbers of the other corpora."""
    reader = load(name)
    found = [read(reader, one) for one in asked]
    results: dict[str, list[Outcome]] = {}
    for costs in COSTS:
        outcomes: dict[str, Outcome] = {}
        for corpus in dict.fromkeys(one.corpus for one in asked):
            others = [one for one in found if one.asked.corpus != corpus] or found
            choice = fitted(others, *costs)
            print(f"costs {costs}, {corpus}: {choice}")
            outcomes |= {
                o.asked.id: concluded(o, choice) for o in found if o.asked.corpus == corpus
            }
        print(f"costs {costs}, all: {fitted(found, *costs)}")
        results[f"reader, costs {costs[0]:g} and {costs[1]:g}"] = [outcomes[o.id] for o in asked]
    print(curve(found))
    return results


def load(name: str) -> ReaderEvaluator:
    """Return the packaged reader by the name `reader`, or the one in a folder."""
    return ReaderEvaluator.packaged() if name == "reader" else ReaderEvaluator.changed(Path(name))


def read(reader: ReaderEvaluator, one: Asked) -> Read:
    """Read the documents of a question."""
    passages = [
        Passage(d.metadata.get("title", ""), d.page_content, d.metadata.get("section", ""))
        for d in one.documents
    ]
    readings = reader.read(one.question, passages)
    grade = max(odds((reading["score"] + 1) / 2) for reading in readings)
    kept = [c for n, p in enumerate(passages) for c in candidates(n, p, readings[n], KEPT)]
    served = [c for n, p in enumerate(passages) for c in candidates(n, p, readings[n], SERVED)]
    return Read(one, grade, _best_first(kept), _best_first(served))


def candidates(
    document: int, passage: Passage, reading: Reading, weights: tuple[float, float, float]
) -> list[Candidate]:
    """Return the strips of a document, each with its value."""
    own, place, neighbour = weights
    strips = list(strips_of(passage.text))
    evidence = [odds(evidence_in(reading, start, end, best=BEST)) for start, end, _ in strips]
    common = own * odds((reading["score"] + 1) / 2) - place * document
    return [
        Candidate(
            document,
            start,
            end,
            text,
            common
            + max(
                evidence[index],
                *(value - neighbour for value in evidence[max(0, index - 1) : index]),
                *(value - neighbour for value in evidence[index + 1 : index + 2]),
                -math.inf,
            ),
        )
        for index, (start, end, text) in enumerate(strips)
    ]


def _best_first(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(found, key=lambda candidate: -candidate.score))


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


def words_of(one: Read) -> int:
    """Count the words of the documents of a question."""
    return count_words([document.page_content for document in one.asked.documents])


def best_strips(one: Read, words: float) -> list[str]:
    """Return the best strips that fit into a share of the words, in the documents' order."""
    left = words * words_of(one)
    taken: list[Candidate] = []
    for strip in one.strips:
        size = len(strip.text.split())
        if size <= left:
            taken.append(strip)
            left -= size
    return [strip.text for strip in sorted(taken)]


def curve(found: Sequence[Read]) -> str:
    """Return, for shares of the words, the questions with evidence kept."""
    able = [
        one
        for one in found
        if holds_evidence("\n".join(d.page_content for d in one.asked.documents), one.asked)
    ]
    before = sum(map(words_of, found))
    lines = ["share | kept | words"]
    for share in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.44, 0.5):
        kept = sum(holds_evidence("\n".join(best_strips(one, share)), one.asked) for one in able)
        words = sum(count_words(best_strips(one, share)) for one in found)
        lines.append(f"{share} | {kept} of {len(able)} | {100 * words / before:.0f} %")
    return "\n".join(lines)


def quoted(one: Read, choice: Choice) -> str:
    """Return what is quoted, or an empty text."""
    if not one.quotable or one.quotable[0].score < choice.quote:
        return ""
    return _joined(one)


def _joined(one: Read) -> str:
    taken = dict.fromkeys(candidate.text for candidate in one.quotable)
    return "\n".join(list(taken)[:QUOTED])


def fitted(found: Sequence[Read], wrong: float, false: float) -> Choice:
    """Return the numbers that bring most: right answers less what wrong and false ones cost."""
    values = [
        (
            one.quotable[0].score if one.quotable else -math.inf,
            _gain(one.asked, _joined(one), wrong, false),
        )
        for one in found
    ]
    starts = sorted({round(value, 1) for value, _ in values if value > -math.inf})
    quote = max(starts, key=lambda start: sum(gain for value, gain in values if value >= start))
    able = [(one.grade, 1.0 if one.asked.answerable else -1.0) for one in found]
    grades = sorted({round(grade, 1) for grade, _ in able})
    upper = max(grades, key=lambda start: sum(gain for grade, gain in able if grade >= start))
    return Choice(MOST_WORDS, upper, quote)


def _gain(asked: Asked, answer: str, wrong: float, false: float) -> float:
    if is_right(answer, asked):
        return 1.0
    return -wrong if asked.answerable else -false


def concluded(one: Read, choice: Choice) -> Outcome:
    """Decide by these numbers."""
    action = "correct" if one.grade >= choice.upper else "ambiguous"
    return outcome(one.asked, action, best_strips(one, choice.words), quoted(one, choice))
