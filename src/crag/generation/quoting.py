"""Quote the strips that were read as the best evidence, in the words of their documents.

A quotation is short: the strip if it has few words, else what is to be read together around the
answer. The best one comes first, and another only if it is nearly as good and adds something.
"""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from textwrap import dedent
from typing import Final, NamedTuple

from crag.answering.outcome import MOST_CLOSEST
from crag.correction.evidence import score_odds
from crag.correction.strips import score_of
from crag.parts import Quotation
from crag.reading import Reading
from crag.state import Strip
from crag.text.as_read import as_read, on_few_lines, only_names
from crag.text.places import line_numbers
from crag.text.wholes import (
    FENCE,
    INDENTED,
    excerpt_at,
    is_head_of_ruled_table,
    leads_in_next,
    lines_of,
    pieces_of,
)
from crag.text.words import bare, question_words, words

MOST_WORDS: Final = 60
"""Words of a quotation, and of all those that an answer leads with; a block is never cut."""
MOST_WORDS_WITH_BLOCK: Final = 90
"""Words of a quotation that a table, or a list with the sentence that leads it in, makes longer.
On the documentation questions five more are answered than with 60, for one word in the median."""
MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
_STANDING_WEIGHT, _SPAN_WEIGHT = -0.3, 0.5
"""What a quotation's log-odds take from those of its document, which weigh enough in the score of
the strip, and from those that it holds a span that answers. On the documentation questions, with
ten strips kept, the first quotation then holds the answer for 61 of 102, with the score alone for
57."""
_HEADING_WEIGHT: Final = 2.0
"""What is added to the log-odds of a strip below a heading that has all words of the question. On
the documentation questions, three of which have such a heading, every figure stays the same."""
_NO_SPAN: Final = -6.0
"""Log-odds of a span where the best one of the document stands in another strip."""
_RULE = r"([=\-~^\"'*+#.`:_])\{}{{2,}}[ \t]*"
_HEADINGS = re.compile(
    rf"(?:\s*(?:#{{1,6}} .*|<!--.*-->|(?:{_RULE.format(1)}\n)?\S.*\n{_RULE.format(2)})?\n)*\s*"
)
_HEADING = re.compile(r"^(?:(?P<marks>#{1,6})[ \t]++)?(?!<!--)(?P<words>.*[^\W_].*)$", re.MULTILINE)
_CLOSING_MARK = re.compile(r"[ \t]#+\Z")
_ENDED = re.compile(r"[.!?:…][\"'”’)\]*_]*\Z")
_OPEN_ENDS = ("?", "!", ".", ":")
"""Ends of headings that no colon follows."""
_FEWEST_ALONE: Final = 3
"""Words up to which a quotation is not understood without its heading, such as "Yes."."""
_BULLET = re.compile(r"\A[-*+•‣–]\s+")
_IN_ITEM = re.compile(r"[ \t]*(?:(?:[-*+•‣–]|\d{1,3}[.)])[ \t]+|(?=[^ \t]))")
"""What stands before the text of a line, in an item as well."""
_MARKED = re.compile(r"\A(?:[-*+•‣–]\s|\d{1,3}[.)]\s|\.\. )")
_WORDS_ALONE = re.compile(r"\A[A-Z][a-z]+(?: \w+){0,9}\Z")
_SENTENCE = re.compile(r"[.:][)\"”*_]*\s*\Z")
_WORD = re.compile(r"\w")
_ITEM = re.compile(r"[ \t]*\n\s*(?:[-*+•‣–]|\(?(?:\d{1,3}|[a-zA-Z#])[.)])[ \t]+\S")
"""The end of a line before an item of a list."""
_LEFT_OUT = "…"


class _QuotedStrip(NamedTuple):
    """A strip as it would be quoted."""

    strip: int
    odds: float
    text: str
    place: tuple[int, int]
    before: str = ""
    """What the text begins with of what stands before the strip."""
    alone: str = ""
    """The text without that."""


def quotations_in(
    question: str, strips: Sequence[Strip], *, most: int, threshold: float, closest: float
) -> list[Quotation]:
    """Return quotations of the best strips, the best first, at most `most`.

    Every strip must have its `reading` and the score of it. They are sure if the best scores at
    least `threshold` and does not end before what it leads in, such as a picture; otherwise at most
    two are returned, as the closest passages, if it scores at least `closest`. Those after the
    first that would make an answer longer than `MOST_WORDS` follow as `further`. No text is quoted
    twice, and none without words, or with names and titles alone.
    """
    asked = frozenset(question_words(question))
    ranked = sorted(
        (
            _candidate(index, strip, asked)
            for index, strip in enumerate(strips)
            if not only_names(strip["text"])
        ),
        key=lambda candidate: -candidate.odds,
    )
    ranked = [candidate for candidate in ranked if _WORD.search(candidate.text)]
    if not ranked or (best := _score(ranked[0], strips)) < closest:
        return []
    sure = best >= threshold and not ranked[0].text.endswith(":")
    near: list[_QuotedStrip] = []
    for candidate in ranked:
        if candidate.odds >= ranked[0].odds - MARGIN:
            near.append(_without_repetition(candidate, near))
    distinct = [
        candidate for place, candidate in enumerate(near) if not _repeats(candidate, near[:place])
    ]
    distinct = [one for one in distinct if not one.text.endswith(":")] or distinct
    quotations: list[Quotation] = []
    word_count = 0
    for candidate in distinct[: most if sure else min(most, MOST_CLOSEST)]:
        word_count += len(candidate.text.split())
        quotations.append(
            Quotation(
                candidate.text, candidate.strip, _score(candidate, strips), candidate.place,
                _span(strips[candidate.strip], candidate.place), sure=sure,
                further=sure and bool(quotations) and word_count > MOST_WORDS,
            )
        )  # fmt: skip
    return quotations


def _candidate(index: int, strip: Strip, asked: frozenset[str]) -> _QuotedStrip:
    text, reading, before = strip["text"], strip["reading"], strip.get("before", "")
    start = 0 if FENCE.match(before) else _after_headings(text)  # Or they are comments of code.
    headings = text[:start]
    if before.startswith("#"):
        headings, before = before + headings, ""
    is_headed = bool(asked) and asked <= frozenset(words(text[:start]))
    anchor = _anchor(reading)
    low, high = _page_around(strip, anchor)
    low = max(start, low)
    ranges = [
        (begin + low, end + low)
        for begin, end in excerpt_at(
            text[low:high], max(0, anchor - low), MOST_WORDS, MOST_WORDS_WITH_BLOCK
        )
    ] or [(low, high)]
    ranges[-1] = _without_lead_in(text, ranges[-1], anchor)
    odds = _odds(strip) + _HEADING_WEIGHT * is_headed
    alone = _without_bullet(_as_quoted(text, ranges))
    if _needs_heading(text[start:], ranges[0][0] - start, ranges[-1][1] - start, alone):
        alone = _below_heading(headings, alone)
    candidate = _QuotedStrip(index, odds, alone, ranges[-1])
    begin, end = ranges[0]
    is_short = len(f"{before}{alone}".split()) <= MOST_WORDS_WITH_BLOCK
    is_within = begin == 0 or _is_of_first_block(text, end)
    if not ((before and is_short and is_within) or _needs_opening(before)):
        return candidate
    whole = _as_quoted(text, ranges, before)
    return candidate._replace(text=whole, before=as_read(before), alone=alone)


def _without_lead_in(text: str, place: tuple[int, int], anchor: int) -> tuple[int, int]:
    """Leave out a last sentence that leads in what the strip does not have, unless it answers."""
    begin, end = place
    pieces = list(pieces_of(text[begin:end]))
    if not pieces:
        return place
    *others, last = pieces
    said = text[begin + last.start : end]
    leads_in = last.kind == "sentence" and leads_in_next(said)
    says_more = any(piece.kind in {"sentence", "block"} for piece in others)
    is_left_out = leads_in and says_more and anchor < begin + last.start
    return (begin, begin + others[-1].end) if is_left_out else place


def _page_around(strip: Strip, place: int) -> tuple[int, int]:
    """Return where the page, slide or chapter begins and ends that a place in a strip is on.

    It is all of the strip where a sentence goes on over the end of a page.
    """
    text, whole = strip["text"], (0, len(strip["text"]))
    lines = text.split("\n")
    try:
        pages = line_numbers(strip["source"].get("places", ""), len(lines))
    except ValueError:  # Another program may write this metadata key otherwise.
        return whole
    at = text.count("\n", 0, place)
    if at >= len(pages) or len(set(pages)) == 1:
        return whole
    here = [number for number, page in enumerate(pages) if page == pages[at]]
    low = sum(len(line) + 1 for line in lines[: here[0]])
    high = min(sum(len(line) + 1 for line in lines[: here[-1] + 1]), len(text))
    parts = (text[:low], text[low:high] if high < len(text) else "")
    is_apart = all(_ENDED.search(part.rstrip()) for part in parts if part.strip())
    return (low, high) if is_apart else whole


def _as_quoted(text: str, ranges: Sequence[tuple[int, int]], before: str = "") -> str:
    """Write ranges as they are read, with a mark for the items that are left out of their list."""
    pieces: list[str] = []
    lead = before
    for number, (begin, end) in enumerate(ranges):
        if number and _ITEM.search(text, ranges[number - 1][1], begin):
            pieces.append(_LEFT_OUT)
        cut = _indented if _opens_literal(lead) else _at_margin
        written = lead + cut(text, begin, end)
        lead = ""
        if number + 1 < len(ranges) and is_head_of_ruled_table(written):
            lead = f"{written}\n"  # Its columns tell what the cells of the rows are.
        else:
            pieces.append(as_read(written))
    is_list = len(ranges) > 1 or _ITEM.search(text, *ranges[-1])
    if is_list and _ITEM.match(text, ranges[-1][1]):
        pieces.append(_LEFT_OUT)
    return "\n".join(pieces)


def _at_margin(text: str, begin: int, end: int) -> str:
    """Move a text to the margin, as an item of an inner list, though it may begin within a line.

    Lines that are indented less than the first one, from there on, are moved by themselves; what
    stands apart before them, and is neither an item nor a sentence, is code of Markdown.
    """
    opening = text[text.rfind("\n", 0, begin) + 1 : begin]
    first, *others = text[begin:end].split("\n")
    inside = _IN_ITEM.match(opening)
    depth = inside.end() if inside else _depth(opening + first)
    less = (at for at, line in enumerate(others) if line.strip() and _depth(line) < depth)
    cut = next(less, len(others))
    moved = "\n".join([first.lstrip(), *(line[depth:] for line in others[:cut])])
    if not others[cut:]:
        return moved
    rest = dedent("\n".join(others[cut:]))
    is_text = inside or any(
        says.search(moved.strip()) for says in (_MARKED, _SENTENCE, _WORDS_ALONE)
    )
    is_whole = moved.endswith("\n") and (moved + rest).count("```") % 2 == 0
    is_code = depth >= INDENTED and is_whole and not is_text
    return f"```\n{moved.rstrip()}\n```\n\n{rest}" if is_code else f"{moved}\n{rest}"


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _indented(text: str, begin: int, end: int) -> str:
    """Keep the indentation of the first line as well: it says that the text is code."""
    start = text.rfind("\n", 0, begin) + 1
    return text[begin:end] if text[start:begin].strip() else text[start:end]


def _needs_opening(before: str) -> bool:
    """Return whether what stands before a strip tells what it is, such as code."""
    return _opens_literal(before) or is_head_of_ruled_table(before.rstrip())


def _opens_literal(before: str) -> bool:
    """Return whether code follows that is told by its indentation alone."""
    return before.rstrip().endswith("::") or before.lstrip().startswith(".. ")


def _is_of_first_block(text: str, end: int) -> bool:
    """Return whether what ends there is a part of the list or table that the strip begins in."""
    first = next(pieces_of(text))
    return first.kind == "block" and end <= first.end


def _needs_heading(text: str, begin: int, end: int, quoted: str) -> bool:
    """Return whether a quotation is of the block below a heading, or says little without that."""
    first = next((line.kind for line in lines_of(text) if line.kind != "blank"), "blank")
    is_block = first in {"code", "row", "item"} and _is_of_first_block(text, end)
    says_little = len(quoted.split()) <= _FEWEST_ALONE or quoted.startswith("(")
    return is_block or (begin == 0 and says_little)


def _below_heading(headings: str, quoted: str) -> str:
    """Lead a quotation in with the last heading above it, if there is one.

    One of a word, such as "Fixed", goes with the heading that it stands below.
    """
    found = list(_HEADING.finditer(headings))
    if not found or not _WORD.search(quoted):
        return quoted
    words = [as_read(_CLOSING_MARK.sub("", one["words"]).rstrip()) for one in found[-2:]]
    levels = [len(one["marks"] or "") for one in found[-2:]]
    is_below = len(words) > 1 and 1 < levels[0] < levels[1]
    heading = ", ".join(words) if is_below and len(words[1].split()) == 1 else words[-1]
    lead = heading if heading.endswith(_OPEN_ENDS) else f"{heading}:"
    return f"{lead}\n\n{quoted}" if "\n" in quoted else f"{lead} {quoted}"


def _without_repetition(candidate: _QuotedStrip, better: Sequence[_QuotedStrip]) -> _QuotedStrip:
    """Leave out what stands before a strip where a better quotation has it already."""
    is_shown = candidate.before and any(candidate.before in other.text for other in better)
    is_head = candidate.before.startswith(("|", "+"))
    return candidate._replace(text=candidate.alone) if is_shown and not is_head else candidate


def _without_bullet(quoted: str) -> str:
    """Leave out the mark of an item that stands alone: it is no list any more."""
    item, marks = _BULLET.subn("", quoted)
    if not marks:
        return quoted
    first, *rest = item.split("\n")
    if all(line[:1].isspace() for line in rest if line):  # They are all of that item.
        return on_few_lines("\n".join([first, dedent("\n".join(rest))]))
    alone = on_few_lines("\n".join(map(str.strip, item.split("\n"))))
    return quoted if "\n" in alone else alone


def _odds(strip: Strip) -> float:
    reading = strip["reading"]
    span = reading["span"]
    answers = max(score_odds(span["score"]), _NO_SPAN) if span is not None else _NO_SPAN
    standing = _STANDING_WEIGHT * score_odds(reading["score"])
    return score_odds(score_of(strip)) + standing + _SPAN_WEIGHT * answers


def _score(candidate: _QuotedStrip, strips: Sequence[Strip]) -> float:
    """Return how sure a quotation is, from -1 to 1: no more than its document is of use."""
    return min(math.tanh(candidate.odds / 2), strips[candidate.strip]["reading"]["score"])


def _anchor(reading: Reading) -> int:
    """Return where the answer stands, or the most evidence where no span does."""
    if (span := reading["span"]) is not None:
        return (span["start"] + span["end"]) // 2
    edges = [*reading["starts"], reading["starts"][-1] + 1] if reading["starts"] else [0, 0]
    best = max(
        zip(pairwise(edges), reading["evidence"], strict=False), key=lambda word: word[1],
        default=((0, 0), 0),
    )  # fmt: skip
    return best[0][0]


def _repeats(candidate: _QuotedStrip, better: Sequence[_QuotedStrip]) -> bool:
    """Return whether a better quotation says all of this one, or the other way round.

    Markup makes no difference: documents are often there in two formats.
    """
    said = bare(candidate.text)
    return any(said in other or other in said for other in (bare(one.text) for one in better))


def _after_headings(text: str) -> int:
    """Return where a strip begins without the headings above it."""
    above = _HEADINGS.match(text)
    return above.end() if above and above.end() < len(text) else 0


def _span(strip: Strip, place: tuple[int, int]) -> tuple[int, int] | None:
    """Return where the answer stands, if that is likelier than that the strip holds none."""
    span = strip["reading"]["span"]
    if span is None or span["score"] <= 0:
        return None
    within = place[0] <= span["start"] and span["end"] <= place[1]
    return (span["start"], span["end"]) if within else None
