"""Quote the strips that were read as the best evidence, in the words of their documents.

A quotation is short, and stands below the heading that names its subject. Another one follows if it
covers words of the question that those before do not, or says the same with another value.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from crag.answering.attribution import SPELT, is_turned_round
from crag.answering.excerpts import (
    NAMES_ONE,
    ParsedStrip,
    excerpt,
    parsed_strip,
    subject_of,
    written,
)
from crag.correction.evidence import about, evidence_odds, named_odds, score_odds
from crag.parts import Quotation
from crag.reading import Span
from crag.state import Strip
from crag.text.words import GROUPS, HOLDS_NO_LONGER, STOP_WORDS, question_words, words

MOST_LIKELY: Final = 2
"""The most quotations where none is sure to answer."""
MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
REACH: Final = 6.0
"""Log-odds by which one may be worse that is compared with the best one by its meaning."""
SIMILAR: Final = 15.0
"""Log-odds for a cosine of 1 between the meanings of question and strip. Of 102 questions over six
other subjects the first quotation then answers 60 instead of 53, of the documentation questions 67
instead of 66; 12 to 20 differ by one or two."""
_MOST_COMPARED: Final = 5
"""Strips whose meaning is compared."""
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
documentation questions that have an answer, the first quotation then answers 66."""
_NO_SPAN: Final = -6.0
"""Log-odds of a span where the best one of the document stands in another strip."""
_SAME: Final = 0.6
"""Share of the words of a statement that another one has, which says the same of something."""
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"\w+(?:[.,:/'’-]\w+)*")
_WITH_DIGIT, _MARK = re.compile(r"\d"), re.compile(r"\A\s*\d+[.)]\s")
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
_OLD = re.compile(rf"\b(?:{HOLDS_NO_LONGER})\b", re.IGNORECASE)
"""What a title, the name of a file or a heading says of what holds no longer."""
_WHY = re.compile(r"\s*why\b|\bwhat (?:is|was) the reason\b", re.IGNORECASE)
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|reasons?|so that|in order to|otherwise|causes?|leads? to"
    r"|(?:could|can|may) lead|to (?:avoid|prevent|protect|ensure|allow))\b",
    re.IGNORECASE,
)

_PIECE = r"(?:[^\W\d_a-z]|[€$£¥]?\d)[\w'’.,:/%°€$£¥-]*(?<![.,:'’-])"
_UNIT = r"per ?cent|second|minute|hour|day|week|month|year|euro|dollar|pound|[kcm]?m|k?g|m?l|ms"
_WHOLE = re.compile(
    rf"`[^`\n]+`|{_PIECE}(?:,? (?:and )?{_PIECE})*(?:[ -](?:{_UNIT})s?\b)?|\w+(?:[-._/@:]\w+)*"
)
"""Code, words with figures or capital letters in a row, such as a date, an amount or a name, and
any other word; of none of them a part is set off."""


Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""How close texts are to a question in meaning, as cosines."""


class _Candidate(NamedTuple):
    """What would be quoted of a strip."""

    odds: float
    named: float
    """What its log-odds lose for the names that it lacks, and for what it is."""
    quotation: Quotation
    about: list[str]
    """The title of its strip, and the headings that it stands below."""
    statement: str
    """The part where the answer stands, a row below the head of its table."""
    answer: frozenset[str]
    """What answers in it, as tokens."""
    file: str
    """Whose records do not disagree."""


def quotations_in(  # noqa: PLR0913 - what to quote, and from which score on
    question: str,
    strips: Sequence[Strip],
    *,
    most: int,
    threshold: float,
    closest: float,
    similarity: Similarity | None = None,
) -> list[Quotation]:
    """Return quotations of the best strips, the best first, at most `most`.

    Every strip must have its `reading` and the score of it. They are sure if the best scores at
    least `threshold`; otherwise they are likely, if it scores at least `closest`. Those that add
    nothing to a sure one are left out, and nothing is quoted that is a heading alone. Of strips
    that are read as nearly equal, `similarity` tells the best.
    """
    found = [one for one in _candidates(question, strips) if one.quotation.score >= closest]
    ranked = sorted(found, key=lambda one: -one.odds)
    if similarity is not None:
        ranked = _by_meaning(question, strips, ranked, similarity)
    asked, covered = {*question_words(question)}, set[str]()
    named = asked.intersection(words(ranked[0].statement)) if ranked else asked
    near = [
        one
        for one in ranked
        if one.odds >= ranked[0].odds - MARGIN
        or (named.issubset(words(one.statement)) and _contradict(ranked[0], one))
    ]
    near = [one for one in near if one.named > near[0].named - NAMES_ONE]
    near = [one for one in near if not any(_is_less(one, other, asked) for other in near[:most])]
    sure = bool(near) and near[0].quotation.score >= threshold
    shown, quotations = list[_Candidate](), list[Quotation]()
    for one in near:
        if len(quotations) == most:
            break
        said = {*words(one.quotation.text)}
        differs = any(_contradict(one, other) for other in shown)
        adds = not shown or not asked & said <= covered
        if not (differs or (adds if sure else len(shown) < MOST_LIKELY)):
            continue
        shown.append(one)
        covered |= said
        others = [other for other in near if _contradict(one, other)]
        common = {name for other in others for name in other.about}
        own = [name for name in one.about if name not in common] if others else []
        quotations.append(
            one.quotation._replace(
                sure=sure, lead=f"{own[-1]}:" if own else one.quotation.lead,
                disagrees=any(
                    other.file != one.file and not _are_two_things(one, other) for other in others
                ),
            )
        )  # fmt: skip
    return quotations


def _by_meaning(
    question: str,
    strips: Sequence[Strip],
    ranked: Sequence[_Candidate],
    similarity: Similarity,
) -> list[_Candidate]:
    """Rank those near the best by how close their strips are to the question in meaning, too."""
    near = [one for one in ranked if one.odds >= ranked[0].odds - REACH][:_MOST_COMPARED]
    if len(near) <= 1:
        return list(ranked)
    whole = [strips[one.quotation.strip] for one in near]
    cosines = similarity(question, [f"{about(one)}\n{one['text']}" for one in whole])
    closer = [
        one._replace(odds=one.odds + SIMILAR * cosine)
        for one, cosine in zip(near, cosines, strict=True)
    ]
    return [*sorted(closer, key=lambda one: -one.odds), *ranked[len(near) :]]


def _candidates(question: str, strips: Sequence[Strip]) -> list[_Candidate]:
    parsed = [
        parsed_strip(one["text"], one.get("before", ""), one.get("headings", ())) for one in strips
    ]
    parts = [
        (index, at)
        for index, one in enumerate(parsed)
        for at, part in enumerate(one.parts)
        if part.end > one.own and _WORD.search(one.said(at)) and at not in one.head(at)
    ]
    told = [(about(strips[i]), *parsed[i].told(at)) for i, at in parts]
    texts = [(f"{whole}\n{label}", text) for whole, label, text in told]
    named: dict[int, dict[int, float]] = {}
    for (index, at), odds in zip(parts, named_odds(question, texts), strict=True):
        named.setdefault(index, {})[at] = odds
    return [_candidate(i, strips[i], parsed[i], own, question) for i, own in named.items()]


def _candidate(
    index: int, strip: Strip, parsed: ParsedStrip, named: Mapping[int, float], question: str
) -> _Candidate:
    """Quote a strip around the part that has the names of the question, nearest to its answer."""
    title, url, reading = strip["source"]["title"], strip["source"]["url"], strip["reading"]
    span, asked = reading["span"], {*question_words(question)}
    anchor = parsed.own + ((span["start"] + span["end"]) // 2 if span else 0)
    files = [title, url.rpartition("/")[2]]
    lost = {at: _lost(question, [*files, *parsed.headings[at]], parsed.said(at)) for at in named}
    items = {at: parsed.item(at) for at in named}
    held = {
        at: len(asked.intersection(words(parsed.said(own[0], own[-1]))))
        for at, own in items.items()
    }
    most = {at: max(held.get(n, 0) for n in [at, *parsed.fellows(at)]) for at in named}
    odds = {at: names - lost[at] - OTHER_ROW * (most[at] - held[at]) for at, names in named.items()}

    def distance(at: int) -> int:
        return max(parsed.parts[at].start - anchor, anchor - parsed.parts[at].end + 1, 0)

    at = max(odds, key=lambda at: (odds[at], -distance(at)))
    answer = strip["text"][span["start"] : span["end"]] if span and not distance(at) else ""
    is_yes_no = _YES_NO.match(question) is not None
    is_bare = asked.issuperset(words(parsed.said(at)))  # It says nothing but what was asked about.
    leads = is_bare or (is_yes_no and parsed.parts[at].kind == "sentence")
    low, high = excerpt(parsed, at, dict.fromkeys(odds, 0.0) if is_bare else odds, leads=leads)
    text = written(parsed, low, high)
    place = max(parsed.parts[low].start - parsed.own, 0), parsed.parts[high].end - parsed.own
    said = strip["text"][span["start"] : span["end"] + 1] if span else ""
    is_another = said.endswith("?") and asked.isdisjoint(words(said))
    answers = max(score_odds(span["score"]), _NO_SPAN) if span and not is_another else _NO_SPAN
    read = evidence_odds(strip) + _SPAN_WEIGHT * answers
    score = min(math.tanh((read - lost[at]) / 2), reading["score"])
    is_told = not (is_yes_no or lost[at])
    return _Candidate(
        odds=read + odds[at],
        named=odds[at],
        quotation=Quotation(
            text, index, score, place,
            set_off(question, strip["text"], span, place) if span and is_told else None,
            lead=subject_of(parsed, low, text, asked),
        ),
        about=[title, *parsed.headings[at]],
        statement=parsed.told(at)[1],
        answer=_tokens(answer),
        file=url.partition("#")[0],
    )  # fmt: skip


def _lost(question: str, names: Sequence[str], said: str) -> float:
    """Return what a part loses that is old, or is not of the kind that was asked for."""
    is_old = _OLD.search("\n".join(names)) and not _OLD.search(question)
    lost = SUPERSEDED if is_old else 0.0
    if _WHY.match(question) and not _BECAUSE.search(said):
        return lost + REASON
    if defined := _WHAT_IS.fullmatch(question):
        term = r"\W+".join(rf"{re.escape(word)}(?:e?s)?" for word in defined["term"].split())
        defines = rf"(?:[\W_]|an? |the )*{term}\W*(?:\([^)]*\)\W*)?(?:is|are|means?|refers|[-–—:|])"
        return lost if re.match(defines, f"{said.strip()} ", re.IGNORECASE) else lost + DEFINES
    return lost


def _contradict(one: _Candidate, other: _Candidate) -> bool:
    """Return whether two candidates say the same with other figures or answers, or with a "not"."""
    said = [_tokens(_MARK.sub("", each.statement)) for each in (one, other)]
    values = [frozenset(filter(_WITH_DIGIT.search, own)) for own in said]
    if not all(values) or values[0] & values[1]:
        values = [each.answer & own for each, own in zip((one, other), said, strict=True)]
    if values[0] <= values[1] or values[1] <= values[0]:
        return is_turned_round(one.statement, [other.statement])
    rest = [own - value for own, value in zip(said, values, strict=True)]
    fewest = min(map(len, rest))
    return bool(fewest) and len(rest[0] & rest[1]) >= _SAME * fewest


def _are_two_things(one: _Candidate, other: _Candidate) -> bool:
    """Return whether each document tells of what only its own title names."""
    title, other_title = ({*question_words(each.about[0])} for each in (one, other))
    text, other_text = ({*words(each.quotation.text)} for each in (one, other))
    own, others = title - other_title, other_title - title
    tell = bool(own and others) and own <= text and others <= other_text
    return tell and own.isdisjoint(other_text) and others.isdisjoint(text)


def _is_less(one: _Candidate, other: _Candidate, asked: set[str]) -> bool:
    """Return whether a file says the same elsewhere, below headings with more that was asked."""
    if one.file != other.file or not _contradict(one, other):
        return False
    said, as_much = (asked.intersection(words(each.statement)) for each in (one, other))
    headings = ("\n".join(each.about[1:]) for each in (one, other))
    above, above_other = (asked.intersection(words(text)) for text in headings)
    return said == as_much and above < above_other


def _tokens(text: str) -> frozenset[str]:
    """Return the words and figures of a text; figures that are spelt are digits."""
    found = (found[0].casefold() for found in _TOKEN.finditer(GROUPS.sub("", text)))
    return frozenset(SPELT.get(token, token) for token in found if token not in STOP_WORDS)


def set_off(question: str, text: str, span: Span, place: tuple[int, int]) -> tuple[int, int] | None:
    """Return the span to set off within a `place` of the text, if there is one.

    It must be likelier than that the passage holds no answer, lie in the place, and have a word
    that the question does not have. What it cuts in two is set off whole.
    """
    start, end = span["start"], span["end"]
    if span["score"] <= 0 or not place[0] <= start <= end <= place[1]:
        return None
    for whole in _WHOLE.finditer(text, *place):
        if whole.start() < end and whole.end() > start:
            start, end = min(start, whole.start()), max(end, whole.end())
    return None if {*words(text[start:end])} <= {*words(question)} else (start, end)
