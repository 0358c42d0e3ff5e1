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
from crag.answering.facts import SPELT
from crag.correction.evidence import evidence_odds, score_odds
from crag.correction.naming import about, named_odds
from crag.parts import Quotation
from crag.reading import Reading, Span, shares_of
from crag.state import Strip
from crag.text.units import ANNOUNCING
from crag.text.words import bare, question_words, words

MOST_LIKELY: Final = 2
"""The most quotations where none is sure to answer."""
MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
DEFINES: Final = 3.0
"""Log-odds that a part loses which does not say what something is, where that was asked."""
REASON: Final = 2.0
"""The same for one that gives no reason where one was asked for."""
SUPERSEDED: Final = 6.0
"""The same for one that is said to hold no longer."""
OTHER_ROW: Final = 6.0
"""The same for an item of a list for each word of the question that another one of it has more."""
_SPAN_WEIGHT: Final = 0.5
"""What a quotation's log-odds take from those that it holds a span that answers. Of the 102
documentation questions that have an answer, the first quotation then answers 65."""
_NO_SPAN: Final = -6.0
"""Log-odds of a span where the best one of the document stands in another strip."""
_ANCHOR_WEIGHT: Final = 5.0
"""Log-odds of what holds the answer as it was read, among the parts of a strip."""
_SAME: Final = 0.6
"""Share of the words of a statement that another one has, which says the same of something."""
_WORD = re.compile(r"\w")
_FIGURE = re.compile(rf"\d|\A(?:{'|'.join(words(' '.join(SPELT)))})\Z")
_FIELD, _FEWEST_FIELDS = re.compile(r"^([^:|\n]{1,40}): ", re.MULTILINE), 3
_YES_NO = re.compile(
    r"\s*(?:am|are|can|could|did|do|does|had|has|have|is|may|must|shall|should|was|were|will"
    r"|would)\s",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(
    r"\s*what(?:['’]s| is| are|(?P<does> does))\s+(?:an? |the )?(?P<term>\w[\w-]*(?: [\w-]+){0,2}?)"
    r"(?(does) mean)\s*\?*\s*",
    re.IGNORECASE,
)
_OLD = re.compile(
    r"\b(?:superseded|obsolete|outdated|withdrawn|expired|archived|old version)\b", re.IGNORECASE
)
"""What a title, the name of a file or a heading says of what holds no longer."""
_NO_LONGER = re.compile(r"\b(?:superseded by|no longer (?:valid|in force))\b", re.IGNORECASE)
_WHY = re.compile(r"\s*why\b|\bwhat (?:is|was) the reason\b", re.IGNORECASE)
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|reasons?|so that|in order to|otherwise|causes?|leads? to"
    r"|(?:could|can|may) lead|to (?:avoid|prevent|protect|ensure|allow))\b",
    re.IGNORECASE,
)

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_CURRENCY = r"(?:[€$£¥]|EUR|USD|GBP|CHF)"
_NUMBER = r"\d(?:[\d.,:/'-]*\d)?"
_UNIT = (
    rf"(?:%|°C?|per ?cent\b|{_CURRENCY}|k?[gm]\b|[cmn]m\b|m?l\b|[kMGT]i?B\b|[kM]?W\b|m?s\b"
    r"|(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|euros?|dollars?|pounds?)\b)"
)
_NAME = r"[^\W\d_a-z][\w'’.-]*(?: [^\W\d_a-z][\w'’-]*)+"
_VALUE = re.compile(r"^([^:\n]{1,40}): .*", re.MULTILINE)
_CLAUSE = re.compile(r"[.;!?](?=\s)")
_ASKS = re.compile(r"[^.!:\n]*\?")
_WHOLE = re.compile(
    rf"(?i:{_DAY}\.? {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_DAY}\b(?:,? \d{{4}})?)"
    rf"|(?:{_CURRENCY} ?)?{_NUMBER}(?:[ -]?{_UNIT})?"
    rf"|{_NAME}(?:, {_NAME})*(?:,? and {_NAME})?"
    r"|\w+(?:[-._/@:]\w+)*"
)
"""Dates, amounts, names of several words, and any other word, of which no part is set off."""


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
    lost: float
    """What they lose in all for what it is."""
    statement: frozenset[str]
    """The words where the answer stands."""


def quotations_in(
    question: str, strips: Sequence[Strip], *, most: int, threshold: float, closest: float
) -> list[Quotation]:
    """Return quotations of the best strips, the best first, at most `most`.

    Every strip must have its `reading` and the score of it. They are sure if the best scores at
    least `threshold` and does not end before what it leads in, such as a picture; otherwise they
    are likely, if it scores at least `closest`. Those that add nothing to a sure one are left out.
    No text is quoted twice, and none that is a heading alone.
    """
    found = [one for one in _candidates(question, strips) if _score(one, strips) >= closest]
    if not found:
        return []
    ranked = sorted(found, key=lambda one: -one.odds)
    best, asked = ranked[0], frozenset(question_words(question))
    rivals = [one for one in ranked[1:] if _is_another(one, best, asked)]
    sure = _score(best, strips) >= threshold and not (best.text.endswith(ANNOUNCING) or rivals)
    near = [one for one in ranked if one.odds >= best.odds - MARGIN]
    near = [one for one in near if not sure or one.named > best.named - NAMES_ONE]
    near = [one for at, one in enumerate(near) if not _repeats(one, near[:at])]
    quotations: list[Quotation] = []
    shown: list[_Candidate] = []
    for one in near:
        others = [other for other in near if _contradicts(one, other)]
        differs = bool(shown) and all(other in others for other in shown)
        covered = frozenset(word for other in shown for word in words(other.text))
        adds = not shown or differs or not (asked & {*words(one.text)}) <= covered
        if not adds if sure else (len(shown) >= MOST_LIKELY and not differs):
            continue
        shown.append(one)
        strip = strips[one.strip]
        sources = {strips[other.strip]["source"]["url"] for other in others}
        span, unsaid = strip["reading"]["span"], one.lost or _YES_NO.match(question)
        quotations.append(
            Quotation(
                one.text, one.strip, _score(one, strips), one.place,
                set_off(question, strip["text"], span, one.place) if span and not unsaid else None,
                sure=sure, lead=_telling_apart(one, others),
                disagrees=bool(sources - {strip["source"]["url"]}),
            )
        )  # fmt: skip
    return quotations[:most]


def _candidates(question: str, strips: Sequence[Strip]) -> list[_Candidate]:
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
    return [_candidate(i, strips[i], parsed[i], own, question) for i, own in named.items()]


def _lost(question: str, names: Sequence[str], said: str) -> float:
    """Return what a part loses that is old, or is not of the kind that was asked for."""
    is_old = _OLD.search("\n".join(names)) or _NO_LONGER.search(said)
    lost = SUPERSEDED if is_old and not _OLD.search(question) else 0.0
    if _WHY.match(question) and not _BECAUSE.search(said):
        return lost + REASON
    if defined := _WHAT_IS.fullmatch(question):
        term = r"\W+".join(rf"{re.escape(word)}(?:e?s)?" for word in defined["term"].split())
        defines = rf"(?:[\W_]|an? |the )*{term}\W*(?:\([^)]*\)\W*)?(?:is|are|means?|refers|[-–—:|])"
        return lost if re.match(defines, f"{said.strip()} ", re.IGNORECASE) else lost + DEFINES
    return lost


def _candidate(
    index: int, strip: Strip, parsed: ParsedStrip, named: dict[int, float], question: str
) -> _Candidate:
    title = strip["source"]["title"]
    names = [title, strip["source"]["url"].rpartition("/")[2]]
    lost = {at: _lost(question, [*names, *parsed.headings[at]], parsed.said(at)) for at in named}
    anchor, asked = _anchor(strip["reading"]) + parsed.own, frozenset(question_words(question))
    held = {at: _held(parsed, parsed.item(at) or [at], asked) for at in named}
    most = {at: max((held[n] for n in parsed.fellows(at) if n in held), default=0) for at in named}
    named = {
        at: odds - lost[at] - OTHER_ROW * max(most[at] - held[at], 0) for at, odds in named.items()
    }
    is_yes_no = _YES_NO.match(question) is not None

    def odds(at: int) -> tuple[float, int]:
        part = parsed.parts[at]
        distance = max(part.start - anchor, anchor - part.end + 1, 0)
        holds = len(asked & {*words(parsed.said(at))}) / len(asked) if is_yes_no else not distance
        return named[at] + _ANCHOR_WEIGHT * holds, -distance

    at = max(named, key=odds)
    low, high = excerpt(parsed, at, named, leads=is_yes_no)
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
        lost=min(lost[n] for n in range(low, high + 1) if n in lost),
        statement=frozenset(question_words(parsed.said(at))),
    )


def _held(parsed: ParsedStrip, parts: Sequence[int], asked: frozenset[str]) -> int:
    """Return how many words of the question some parts have together."""
    return len(asked & {*words(parsed.said(parts[0], parts[-1]))})


def _odds(strip: Strip) -> float:
    """Return the log-odds that a strip answers, whatever names it has."""
    reading = strip["reading"]
    span = reading["span"]
    answers = max(score_odds(span["score"]), _NO_SPAN) if span is not None else _NO_SPAN
    return evidence_odds(strip) + _SPAN_WEIGHT * answers


def _score(candidate: _Candidate, strips: Sequence[Strip]) -> float:
    """Return how sure a quotation is, from -1 to 1: no more than its document is of use."""
    odds = candidate.odds - candidate.named - candidate.lost
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
    if candidate.named + candidate.lost < other.named + other.lost:
        return False
    figures = [
        {word for word in one.statement if _FIGURE.search(word)} for one in (candidate, other)
    ]
    said = [one.statement - own for one, own in zip((candidate, other), figures, strict=True)]
    fewest = min(map(len, said))
    is_same = bool(fewest) and len(said[0] & said[1]) >= _SAME * fewest
    return is_same and all(figures) and not figures[0] & figures[1]


def _is_another(candidate: _Candidate, other: _Candidate, asked: frozenset[str]) -> bool:
    """Return whether two are records of one kind that have the same words of the question."""
    kinds = [tuple(_FIELD.findall(one.text)) for one in (candidate, other)]
    held = [asked & {*words(one.text)} for one in (candidate, other)]
    return len(kinds[0]) >= _FEWEST_FIELDS and kinds[0] == kinds[1] and held[0] >= held[1]


def _telling_apart(candidate: _Candidate, others: Sequence[_Candidate]) -> str:
    """Return the title or heading that tells a candidate from those that contradict it."""
    common = {name for other in others for name in other.about}
    own = [name for name in candidate.about if name not in common] if others else []
    return f"{own[-1]}:" if own else candidate.lead


def set_off(question: str, text: str, span: Span, place: tuple[int, int]) -> tuple[int, int] | None:
    """Return the span to set off within a `place` of the text, if there is one.

    It must be likelier than that the passage holds no answer, lie in the place and in no question,
    and have a word that the question does not have. The value of a field is not set off where
    the label of another one has more words of the question. What it cuts in two is set off whole.
    """
    start, end = span["start"], span["end"]
    if clause := _CLAUSE.search(text, start, end):
        end = clause.start()
    is_within = place[0] <= start and end <= place[1]
    if span["score"] <= 0 or not is_within or _ASKS.match(text, start):
        return None
    for whole in _WHOLE.finditer(text, *place):
        if whole.start() < end and whole.end() > start:
            start, end = min(start, whole.start()), max(end, whole.end())
    says_nothing = {*words(text[start:end])} <= {*words(question)}
    is_wrong = says_nothing or _is_of_another_field(question, text[slice(*place)], start - place[0])
    return None if is_wrong else (start, end)


def _is_of_another_field(question: str, text: str, at: int) -> bool:
    """Return whether a place is in a field, and the label of another has more words asked for."""
    asked, own, others = {*question_words(question)}, 0, 0
    for field in _VALUE.finditer(text):
        held = len(asked & {*words(field[1])})
        if field.start() <= at < field.end():
            own = held
        else:
            others = max(others, held)
    return others > own
