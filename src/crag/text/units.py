"""Cut a text into strips: spans that are read together, and never within a sentence or an item.

The text is the canonical Markdown of `crag.text.blocks`; any other text is read by the same few
rules, and what looks like no block is prose. A strip is up to three sentences, or a list, a table
or code with the sentence that leads it in. What is too long for one strip is cut between items,
rows or stanzas, and each part knows what stands before it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, cast

from crag.text.blocks import HARD_BREAK
from crag.text.language import language_of
from crag.text.sentences import split_sentences
from crag.text.words import word_count

SENTENCES_PER_STRIP = 3
"""The paper says a few sentences; the official excerption joins three."""
LONGEST = 120
"""Words of a strip, so that each fits the input of an evaluator."""
LONGEST_CODE = 240
"""Words of code that is not cut."""
LONGEST_INTRODUCED, LONGEST_LEANING = 180, 60
"""Words of a strip up to which a block stays with the sentence that leads it in, and a sentence
with the one that it refers to."""
ANNOUNCING = ":", "\N{FULLWIDTH COLON}", "\N{EM DASH}"
"""How a sentence ends that only leads in what follows it."""
_FEWEST_ENTRIES, _MOST_OF_ENTRY = 3, 20
"""Lines of a paragraph that is a list to its readers, and words of one."""
_ALIKE = 0.8
"""Share of such lines that have the same form but for letters and figures."""
_LETTERS = re.compile(r"[^\W\d_]+(?:\s+[^\W\d_]+)*")
_BELOW_ALL = 7
"""The level of a line that is bold as a whole, which is a heading to its readers; one that is
numbered 2.1 stands below one that is numbered 2."""
PartKind = Literal["heading", "sentence", "item", "row", "code"]
_MARK = r"(?:[-*+•‣–]|\d{1,3}[.)])[ \t]+\S"
_TEXT = rf"(?!\||#{{1,6}}[ \t]+\S|[ \t]*(?:`{{3}}|~{{3}}|{_MARK}))[^\n]*\S[^\n]*"
"""A line of a paragraph, or of an item that goes on."""
_PART = re.compile(
    r"^(?:(?P<code>[ \t]*(?P<fence>`{3,}|~{3,}).*"
    r"(?:\n(?![ \t]*(?P=fence)[`~]*[ \t]*$).*)*(?:\n.*)?)"
    r"|(?P<heading>#{1,6}[ \t]+\S.*)|(?P<row>\|.*)"
    rf"|(?P<item>(?P<margin>[ \t]*){_MARK}.*(?:\n(?:[ \t]*\n)*(?P=margin)[ \t]+\S.*|\n{_TEXT})*)"
    rf"|(?P<sentence>{_TEXT}(?:\n{_TEXT})*))",
    re.MULTILINE,
)
_LINE = re.compile(r".+(?:\n[ \t]*(?=\n|\Z))*\n?")
_BOLD = re.compile(r"(\*\*|__)(?=(?P<number>[\d.]*))(?=[^\s*_])[^\n*_]{1,80}(?<![\s.!])\1:?\s*")
_RULE = re.compile(r"[|\-: \t]+")
_WORD = re.compile(r"\s*\S+\s*")
_LEANS = re.compile(
    r"(?:it|its|this|that|these|those|they|them|their|he|she|such|then|otherwise|instead|however|"
    r"but|and|or|so|also|here|in (?:this|that|these|such) |for (?:example|instance)|therefore|thus|"
    r"hence)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"\bfollowing\b|\b(?:as follows|below)\.?$", re.IGNORECASE)


class Part(NamedTuple):
    """A heading, a sentence, an item of a list, a row of a table, or a block of code."""

    kind: PartKind
    start: int
    end: int
    block: int
    """Parts of one block have one number, and those of a later one a higher one."""
    level: int = 0
    """Of a heading, from 1."""


class Unit(NamedTuple):
    """A strip as a span of a text."""

    start: int
    end: int
    before: str = ""
    """What it needs to be read: the part of the text that leads its list in, with the head of its
    table or the fence of its code; empty where the strip begins with that."""
    headings: tuple[str, ...] = ()
    """Those that its words stand below, its own among them, the highest first."""


def parts_of(text: str) -> Iterator[Part]:
    """Yield the parts of a text, in order; only white space stands between them."""
    language, block, before = language_of(text), 0, ("", 0)
    for found in _PART.finditer(text):
        kind = cast("PartKind", found.lastgroup)
        start, end = found.start(), found.start() + len(found[0].rstrip())
        apart = text.count("\n", before[1], start) > 1
        block += before[0] != kind or kind not in {"item", "row"} or (apart and kind == "row")
        before = kind, end
        if kind == "sentence" and (bold := _BOLD.fullmatch(text, start, end)):
            level = _BELOW_ALL + bold["number"].strip(".").count(".")
            yield Part("heading", start, end, block, level)
        elif kind == "sentence" and _are_entries(lines := text[start:end].split(HARD_BREAK)):
            for line in lines:
                yield Part("item", start, start + len(line), block)
                start += len(line) + len(HARD_BREAK)
        elif kind == "sentence":
            for sentence in split_sentences(text[start:end], language):
                if said := sentence.strip():
                    begin = start + sentence.index(said)
                    yield Part("sentence", begin, begin + len(said), block)
                start += len(sentence)
        else:
            level = len(found[0]) - len(found[0].lstrip("#")) if kind == "heading" else 0
            yield Part(kind, start, end, block, level)


def _are_entries(lines: Sequence[str]) -> bool:
    """Return whether lines are a list of things of one kind, rather than prose or a form."""
    if len(lines) < _FEWEST_ENTRIES or any(word_count(line) > _MOST_OF_ENTRY for line in lines):
        return False
    forms = Counter(re.sub(r"\d+", "0", _LETTERS.sub("a", line)) for line in lines)
    return forms.most_common(1)[0][1] >= _ALIKE * len(lines)


def units_of(text: str) -> list[Unit]:
    """Cut a text into strips, in order; only white space stands between them."""
    units, path, is_open = list[Unit](), list[tuple[int, str]](), False
    for is_heading, run in groupby(parts_of(text), key=lambda part: part.kind == "heading"):
        parts = list(run)
        for part in parts if is_heading else ():
            path = [above for above in path if above[0] < part.level]
            path.append((part.level, heading_words(text[part.start : part.end])))
        names = tuple(name for _, name in path)
        for unit in [_spanning(parts)] if is_heading else _units_in(text, parts):
            start = units.pop().start if is_open else unit.start  # What follows headings has them.
            units.append(unit._replace(start=start, headings=names))
            is_open = is_heading
    return units


def heading_words(heading: str) -> str:
    """Return a heading without its marks."""
    return heading.strip("#*_ \t\n").removesuffix(":").rstrip("*_ ")


def leads_in(sentence: str) -> bool:
    """Return whether a sentence belongs to the block after it."""
    said = sentence.rstrip("*_ ")
    return said.endswith((*ANNOUNCING, "?")) or _FOLLOWS.search(said) is not None


def leans(text: str, start: int = 0) -> bool:
    """Return whether what begins there refers to what stands before it."""
    return _LEANS.match(text, start) is not None


def is_rule(row: str) -> bool:
    """Return whether a row of a table only parts its head from the others."""
    return _RULE.fullmatch(row) is not None


def _units_in(text: str, body: Sequence[Part]) -> Iterator[Unit]:
    """Join sentences, and what leads a block in with that, or with its first part."""
    waiting: list[Part] = []
    sentences = Counter(part.block for part in body)
    for group in _groups(text, body):
        if group[0].kind == "sentence":
            begins = bool(waiting) and waiting[-1].block != group[0].block
            together = min(sentences[group[0].block], SENTENCES_PER_STRIP) if begins else 1
            if waiting and _is_full(text, waiting, group[0], together):
                yield _spanning(waiting)
                waiting = []
            waiting += group
            continue
        is_code = group[0].kind == "code"
        lead = [one for one in waiting[-1:] if is_code or leads_in(text[one.start : one.end])]
        size = _size(text, group)
        is_whole = size <= (LONGEST_CODE if is_code else LONGEST)
        has_room = is_whole and _size(text, waiting) + size <= LONGEST_INTRODUCED
        if waiting[: -1 if lead else None] and not (lead and has_room):
            yield _spanning(waiting[: -1 if lead else None])
            waiting = lead
        if is_whole:
            yield _spanning([*waiting, *group])
        else:
            yield from _cut(text, lead, group)
        waiting = []
    if waiting:
        yield _spanning(waiting)


def _groups(text: str, body: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield each sentence alone, those that are too long cut, and other blocks whole."""
    for _, run in groupby(body, key=lambda part: part.block):
        parts = list(run)
        if parts[0].kind != "sentence":
            yield parts
        else:
            yield from ([piece] for part in parts for piece in _short(text, part))


def _is_full(text: str, waiting: Sequence[Part], following: Part, together: int) -> bool:
    """Return whether a strip has no room for a sentence, and for those that it is to stand with."""
    size = _size(text, [*waiting, following])
    if leans(text, following.start) and size <= LONGEST_LEANING:
        return False
    is_question = text[waiting[-1].end - 1] == "?"
    return size > LONGEST or (len(waiting) + together > SENTENCES_PER_STRIP and not is_question)


def _cut(text: str, lead: Sequence[Part], group: Sequence[Part]) -> Iterator[Unit]:
    """Cut a block between its parts; each but the first says what stands before the block."""
    opening = [*lead, *group[: _head_size(text, group)]]
    pieces = [piece for part in group[_head_size(text, group) :] for piece in _short(text, part)]
    own = text.index("\n", group[0].start) + 1 if group[0].kind == "code" else pieces[0].start
    before = text[lead[0].start if lead else group[0].start : own]
    context, run = "", list[Part]()
    for piece in pieces:
        if run and _size(text, [*opening, *run, piece]) > LONGEST:
            yield _spanning([*opening, *run])._replace(before=context)
            opening, run, context = [], [], before
        run.append(piece)
    yield _spanning([*opening, *run])._replace(before=context)


def _head_size(text: str, group: Sequence[Part]) -> int:
    """Return how many rows the head of a table has, with the rule below it."""
    has_rule = len(group) > 2 and is_rule(text[group[1].start : group[1].end])  # noqa: PLR2004
    return 2 if group[0].kind == "row" and has_rule else 0


def _short(text: str, part: Part) -> Iterator[Part]:
    """Cut a part that is too long into pieces as long as there is room."""
    if part.kind == "row" or _size(text, [part]) <= LONGEST:
        yield part
        return
    begin = at = part.start
    for piece in _pieces(text[part.start : part.end]):
        if at > begin and word_count(text[begin : at + len(piece)]) > LONGEST:
            yield part._replace(start=begin, end=begin + len(text[begin:at].rstrip()))
            begin = at
        at += len(piece)
    yield part._replace(start=begin)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text, or if it is too long its lines, of a long line its sentences or words."""
    ways = (_LINE.findall, split_sentences, _WORD.findall) if word_count(text) > LONGEST else ()
    pieces = next((found for way in ways if len(found := way(text)) > 1), [])
    yield from (short for piece in pieces for short in _pieces(piece)) if pieces else [text]


def _size(text: str, parts: Sequence[Part]) -> int:
    return word_count(text[parts[0].start : parts[-1].end]) if parts else 0


def _spanning(parts: Sequence[Part]) -> Unit:
    return Unit(parts[0].start, parts[-1].end)
