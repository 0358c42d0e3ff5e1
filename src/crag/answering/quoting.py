"""Quote the strips that were read as the best evidence, in the words of their documents.

A quotation is short, and stands below the heading that names its subject. Another one follows if it
covers words of the question that those before do not, or says the same with another value.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from crag.answering.excerpts import (
    NAMES_ONE,
    ParsedStrip,
    excerpt,
    parsed_strip,
    subject_of,
    written,
)
from crag.correction.evidence import evidence_odds, score_odds
from crag.correction.naming import about, named_odds
from crag.parts import Quotation
from crag.reading import Reading, shares_of
from crag.state import Strip
from crag.text.words import bare, question_words, words

MOST_LIKELY: Final = 2
"""The most quotations where none is sure to answer."""
MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
_STANDING_WEIGHT, _SPAN_WEIGHT = -0.15, 0.5
"""What a quotation's log-odds take from those of its document, which weigh enough in the score of
the strip, and from those that it holds a span that answers. Of the 102 documentation questions
that have an answer, the first quotation then answers 63, and those shown 70."""
_NO_SPAN: Final = -6.0
"""Log-odds of a span where the best one of the document stands in another strip."""
_ANCHOR_WEIGHT: Final = 5.0
"""Log-odds of what holds the answer as it was read, among the parts of a strip."""
_SAME: Final = 0.6
"""Share of the words of a statement that another one has, which says the same of something."""
_WORD, _FIGURE = re.compile(r"\w"), re.compile(r"\d")


class _Candidate(NamedTuple):
    """A strip as it would be quoted."""

    strip: int
    odds: float
    text: str
    lead: str
    place: tuple[int, int]
    about: list[str]
    """Its title and the headings that it stands below."""
    named: float
    """What its log-odds lose for the names that it lacks."""
    statement: frozenset[str]
    """The words where the answer stands."""


def quotations_in(
    question: str, strips: Sequence[Strip], *, most: int, threshold: float, closest: float
) -> list[Quotation]:
    """Return quotations of the best strips, the best first, at most `most`.

    Every strip must have its `reading` and the score of it. They are sure if the best scores at
    least `threshold` and does not end before what it leads in, such as a picture; otherwise they
    are likely, if it scores at least `closest`. Those that add nothing to a sure one follow as
    `further`. No text is quoted twice, and none that is a heading alone.
    """
    found = [one for one in _candidates(question, strips) if _score(one, strips) >= closest]
    if not found:
        return []
    ranked = sorted(found, key=lambda one: -one.odds)
    best, asked = ranked[0], frozenset(question_words(question))
    sure = _score(best, strips) >= threshold and not best.text.endswith(":")
    near = [one for one in ranked if one.odds >= best.odds - MARGIN]
    near = [one for one in near if not sure or one.named > best.named - NAMES_ONE]
    near = [one for at, one in enumerate(near) if not _repeats(one, near[:at])]
    near = [one for one in near if not one.text.endswith(":")] or near
    quotations: list[Quotation] = []
    shown: list[_Candidate] = []
    for one in _told_apart(near):
        differs = bool(shown) and all(_contradicts(one, other) for other in shown)
        covered = frozenset(word for other in shown for word in words(other.text))
        adds = not shown or differs or not (asked & {*words(one.text)}) <= covered
        if not sure and len(shown) >= MOST_LIKELY and not differs:
            continue
        if adds or not sure:
            shown.append(one)
        quotations.append(
            Quotation(
                one.text, one.strip, _score(one, strips), one.place,
                _span(strips[one.strip], one.place), sure=sure, further=sure and not adds,
                lead=one.lead,
            )
        )  # fmt: skip
    return quotations[:most]


def _candidates(question: str, strips: Sequence[Strip]) -> list[_Candidate]:
    asked = frozenset(question_words(question))
    parsed = list(map(parsed_strip, strips))
    parts = [
        (index, at)
        for index, one in enumerate(parsed)
        for at, part in enumerate(one.parts)
        if part.end > one.own and _WORD.search(one.said(at)) and not one.heads(at)
    ]
    texts = [
        ("\n".join([about(strips[i]), *parsed[i].headings[at], parsed[i].label(at)]),
         "\n".join([*parsed[i].head(at), parsed[i].said(at)]))
        for i, at in parts
    ]  # fmt: skip
    named: dict[int, dict[int, float]] = {}
    for (index, at), odds in zip(parts, named_odds(question, texts), strict=True):
        named.setdefault(index, {})[at] = odds
    return [_candidate(i, strips[i], parsed[i], own, asked) for i, own in named.items()]


def _candidate(
    index: int, strip: Strip, parsed: ParsedStrip, named: dict[int, float], asked: frozenset[str]
) -> _Candidate:
    anchor = _anchor(strip["reading"]) + parsed.own

    def odds(at: int) -> tuple[float, int]:
        part = parsed.parts[at]
        distance = max(part.start - anchor, anchor - part.end + 1, 0)
        return named[at] + _ANCHOR_WEIGHT * (not distance), -distance

    at = max(named, key=odds)
    low, high = excerpt(parsed, at, named)
    text = written(parsed, low, high)
    holds = max(named[n] for n in range(low, high + 1) if n in named)
    start = max(parsed.parts[low].start - parsed.own, 0)
    return _Candidate(
        strip=index,
        odds=_odds(strip) + holds,
        text=text,
        lead=subject_of(parsed, low, text, asked),
        place=(start, parsed.parts[high].end - parsed.own),
        about=[strip["source"]["title"], *parsed.headings[at]],
        named=holds,
        statement=frozenset(question_words(parsed.said(at))),
    )


def _odds(strip: Strip) -> float:
    """Return the log-odds that a strip answers, whatever names it has."""
    reading = strip["reading"]
    span = reading["span"]
    answers = max(score_odds(span["score"]), _NO_SPAN) if span is not None else _NO_SPAN
    standing = _STANDING_WEIGHT * score_odds(reading["score"])
    return evidence_odds(strip) + standing + _SPAN_WEIGHT * answers


def _score(candidate: _Candidate, strips: Sequence[Strip]) -> float:
    """Return how sure a quotation is, from -1 to 1: no more than its document is of use."""
    odds = candidate.odds - candidate.named
    return min(math.tanh(odds / 2), strips[candidate.strip]["reading"]["score"])


def _anchor(reading: Reading) -> int:
    """Return where the answer stands, or the most evidence where no span does."""
    if (span := reading["span"]) is not None:
        return (span["start"] + span["end"]) // 2
    return max(shares_of(reading), key=lambda word: word[1], default=(0, 0))[0]


def _repeats(candidate: _Candidate, better: Sequence[_Candidate]) -> bool:
    """Return whether a better quotation says all of this one, or the other way round.

    Markup makes no difference: documents are often there in two formats.
    """
    said = bare(candidate.text)
    return any(said in other or other in said for other in (bare(one.text) for one in better))


def _contradicts(candidate: _Candidate, other: _Candidate) -> bool:
    """Return whether a candidate says the same as another one, with another figure."""
    if candidate.named < other.named:
        return False
    figures = [
        {word for word in one.statement if _FIGURE.search(word)} for one in (candidate, other)
    ]
    said = [one.statement - own for one, own in zip((candidate, other), figures, strict=True)]
    fewest = min(map(len, said))
    is_same = bool(fewest) and len(said[0] & said[1]) >= _SAME * fewest
    return is_same and all(figures) and not figures[0] & figures[1]


def _told_apart(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Put above those that contradict each other the title or heading that tells them apart."""
    told: list[_Candidate] = []
    for one in candidates:
        others = [other for other in candidates if _contradicts(one, other)]
        common = {name for other in others for name in other.about}
        own = [name for name in one.about if name not in common] if others else []
        told.append(one._replace(lead=f"{own[-1]}:") if own else one)
    return told


def _span(strip: Strip, place: tuple[int, int]) -> tuple[int, int] | None:
    """Return where the answer stands, if that is likelier than that the strip holds none."""
    span = strip["reading"]["span"]
    if span is None or span["score"] <= 0:
        return None
    within = place[0] <= span["start"] and span["end"] <= place[1]
    return (span["start"], span["end"]) if within else None
