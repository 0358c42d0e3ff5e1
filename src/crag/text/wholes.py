"""The smallest part of a text that can be read alone, and holds a given place.

A sentence; an item with the line that leads its list in; a row with the head of its table; a block
of code, or the text of an admonition, with the line that introduces it. Markdown, reStructuredText
and plain text are told apart by their lines, so that it works on any piece of any of them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from crag.text.sentences import split_sentences

Kind = Literal["blank", "heading", "code", "row", "item", "admonition", "prose"]

CODE_DIRECTIVES = {"code", "code-block", "sourcecode", "parsed-literal", "ipython", "testcode",
                   "doctest", "testoutput", "prompt", "console", "productionlist"}  # fmt: skip
"""Directives of reStructuredText and MyST whose content is code."""
FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}|~{3,})")
"""How a line begins that opens or closes a block of code."""
DOCTEST = re.compile(r"[ \t]*>>> \S")
"""How a line begins that opens code as an interpreter shows it, which an empty line ends."""
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S")
_RULE = re.compile(r"([=\-~^\"'*+#.`:_])\1{2,}\s*$")
_TITLE = re.compile(r"(?![-*+|>\s]).*\w")
"""A title of reStructuredText, which has a rule below it, and may have one above it."""
_SHOWS_CODE = re.compile(
    r"[ \t>]*(?:(?:`{3,}|~{3,}).*"
    rf"|\.\. (?:{'|'.join(sorted(CODE_DIRECTIVES))})::.*(?:\n[ \t]+:.*){{0,20}}\n(?=[ \t]*\n))"
)
"""What opens code: a fence, or a directive with its options and the empty line below them."""
_COLUMNS = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*$")
"""A rule of a simple table of reStructuredText, which shows where its columns are."""
GRID_RULE = re.compile(r"[ \t]*\+[-=+]+\+[ \t]*$", re.MULTILINE)
"""A rule of a grid, which stands between its rows."""
_LONGEST_HEAD = 10
"""Lines of the head of a simple table, with its rules."""
_MOST_RULES = 3
"""Rules of a simple table: above its head, below it, and at its end."""
_ROW = re.compile(rf"\s*[|+].*[|+]\s*$|{_COLUMNS.pattern}")
_ITEM = re.compile(
    r"\s*(?:> ?)*(?:[-*+•‣–]|\(?(?:\d{1,3}|[a-zA-Z#])[.)]|:[a-zA-Z][\w ./*-]{0,40}:)\s+\S"
)
"""How an item of a list begins, or a field of reStructuredText."""
_ADMONITION = re.compile(r"\s*(?:!!!|\?\?\?\+?|\.\. [\w:-]+::)")
_SINCE = re.compile(r"\.\. (?:versionadded|versionchanged|deprecated)::[ \t]*\S*")
"""What tells no more than since when there is what stands before and after it."""
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_ADMONITION, "admonition"), (_HEADING, "heading"), (_ROW, "row"), (_ITEM, "item"),
)  # fmt: skip
_RUBRIC = re.compile(r"\.\. rubric::[ \t]+\S")
"""A heading that is in no table of contents."""
_TERM = re.compile(r"\s*[^\s:|>/](?:.*[^\s.!?:;,([{])?\s*$")
"""A line that may say what the indented text below it is about: it ends as no sentence does, and
with no bracket, as code."""
_LONGEST_TERM, _LONGEST_TERM_ABOVE = 8, 4
"""Words of a term that an empty line follows, and of one right above its text: with more it is
likelier a sentence."""
_WORDS = re.compile(r"\w")
_LINE = re.compile(r".+")
_NAMES = frozenset({"heading", "term"})
"""Pieces that say nothing without the next one."""
INDENTED = 4
"""Spaces from which on a block is code in Markdown."""
_NEVER = 10**9
"""A depth that no line has."""
_NEAR = 2
"""Lines between a sentence and the block that it leads in, at most: one of them blank."""
_LEANS = re.compile(
    r"(?:it|its|this|that|these|those|they|them|their|he|she|his|her|such|there|then|otherwise|"
    r"instead|however|but|and|or|so|also|both|here|in (?:this|that|these|those|such|which)|"
    r"(?:to|for|by|with|because of|after|before|if|when|while) (?:\w+ )?(?:this|these|those)|"
    r"for (?:example|instance)|to do so|thus|therefore|hence|similarly|alternatively|likewise)\b",
    re.IGNORECASE,
)
"""How a sentence begins that is not understood without the one before it."""
_GOES_ON = re.compile(r"[a-z]{1,12} [a-z]")
"""How a sentence begins that code or a list has interrupted."""


_QUESTION = re.compile(r"[*_ ]*(?:Q|Question)(?: ?\d{1,3})?[.:)]")
"""How the questions of a list of them are marked where the answer goes on in the line."""
_FIELD = re.compile(r"[ \t]*([*_]{1,2})\w[\w -]{0,30}(?::\1|\1:)(?=\s)")
"""How a line begins that tells one thing of what stands above it, such as its default."""
_IN_BOLD = re.compile(r"\*\*[^*\n]{1,60}\*\*|__[^_\n]{1,60}__")
"""A line that names what stands below it, as the title of a tab."""
_DOTS = ("...", "…")
_FOLLOWING = re.compile(r"\bfollowing\b|\b(?:as follows|below)\.?$", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a text, with what it is part of."""

    start: int
    end: int
    """Before its line feed."""
    kind: Kind
    block: int
    """Neighbouring lines of one kind are one block; each fence and each directive is its own."""


Range = tuple[int, int]


class TextPiece(NamedTuple):
    """A heading, a term that indented text explains, a sentence, or a block that is read whole.

    A question on a line of its own is a term too: what follows answers it.
    """

    start: int
    end: int
    kind: Literal["heading", "term", "sentence", "block"]
    leads_in: bool = False
    """It ends with a colon, or speaks of what follows: what comes next belongs to it."""
    leans: bool = False
    """It is not understood without the piece before it."""
    items: tuple[Range, ...] = ()
    """Where each item of a list begins and ends, those within another one too."""


def pieces_of(text: str) -> Iterator[TextPiece]:
    """Cut a text into pieces, in order; only white space stands between them.

    A list with all that its items hold, a table, a block of code and an admonition are one piece
    each.
    """
    lines = list(lines_of(text))
    at = 0
    while at < len(lines):
        first, last = at, _block_end(text, lines, at)
        at = last + 1
        start, end = without_blanks(text, lines[first].start, lines[last].end)
        match lines[first].kind:
            case "heading":
                is_alone = first == last and _kind(text[start:end]) == "prose"
                kind: Literal["term", "heading"] = "term" if is_alone else "heading"
                yield from (TextPiece(line.start, line.end, kind) for line in lines[first:at])
            case "prose":
                yield from _sentences_within(text, start, end, _block_is_next(lines, at))
            case "item":
                items = (
                    (line.start, lines[_held_end(text, lines, number)].end)
                    for number, line in enumerate(lines[first:at], first)
                    if line.kind == "item"
                )
                yield TextPiece(start, end, "block", items=tuple(items))
            case _ if _SINCE.fullmatch(text, start, end) and _is_led_in(text, lines, first):
                yield TextPiece(start, end, "sentence", leads_in=True)
            case _ if start < end:  # Else it holds nothing but empty lines.
                yield TextPiece(start, end, "block")


def _is_led_in(text: str, lines: Sequence[Line], first: int) -> bool:
    """Return whether a sentence that ends with a colon stands right before a line."""
    near = [line for line in lines[max(0, first - _NEAR) : first] if line.kind != "blank"]
    return any(line.kind == "prose" for line in near[-1:]) and _ends_with_colon(text, near[-1])


def _ends_with_colon(text: str, line: Line) -> bool:
    return text[line.start : line.end].rstrip("*_ ").endswith(":")


def _sentences_within(text: str, start: int, end: int, before_block: bool) -> Iterator[TextPiece]:
    is_first = True
    for piece in _with_question_apart(split_sentences(text[start:end])):
        low, high = _trimmed(text, start, start + len(piece))
        start += len(piece)
        if low < high:
            sentence = text[low:high]
            leads_in = _leads_in(sentence, before_block=before_block and high == end)
            stands_apart = (
                text[high : high + 1] in {"", "\n"} or _QUESTION.match(sentence) is not None
            )
            is_term = is_first and asks(sentence) and stands_apart
            kind: Literal["term", "sentence"] = "term" if is_term else "sentence"
            yield TextPiece(low, high, kind, leads_in, _leans(sentence))
            is_first = False


def _leads_in(sentence: str, *, before_block: bool) -> bool:
    """Return whether a sentence ends with a colon, or speaks of, or names, the block after it.

    Some write three dots for the colon.
    """
    names = names_next(sentence) or _IN_BOLD.fullmatch(sentence) is not None
    last = sentence.rstrip("*_ ")
    return last.endswith(":") or (before_block and (names or last.endswith(_DOTS)))


def _with_question_apart(sentences: Sequence[str]) -> list[str]:
    """Cut a question on a line of its own, such as one in bold, off the sentence below it."""
    first, *others = sentences
    line, line_feed, rest = first.partition("\n")
    return [line + line_feed, rest, *others] if rest and asks(line) else [first, *others]


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question, as one of a list of them that are answered."""
    return sentence.rstrip("*_ ").endswith("?")


def names_next(sentence: str) -> bool:
    """Return whether a sentence speaks of the block after it, if there is one."""
    return _FOLLOWING.search(sentence) is not None


def leads_in_next(sentence: str) -> bool:
    """Return whether the last sentence of a text asks for what is not there any more."""
    return sentence.endswith(",") or _leads_in(sentence, before_block=True)


def _block_is_next(lines: Sequence[Line], at: int) -> bool:
    """Return whether a list, a table, code or a directive begins there, or after an empty line."""
    near = [line.kind for line in lines[at : at + _NEAR] if line.kind != "blank"]
    return near[:1] not in ([], ["prose"], ["heading"])


def _leans(sentence: str) -> bool:
    leans = _LEANS.match(sentence.lstrip("*_ >\"'")) or _FIELD.match(sentence)
    return leans is not None or _GOES_ON.match(sentence) is not None


def contexts_of(text: str, pieces: Sequence[TextPiece], starts: Sequence[int]) -> list[str]:
    """Return for each place that a text is cut at, in order, what is to be read before it.

    `pieces` are those of the whole text. To be read is the head of the table, what opens the code,
    or the sentence that leads in the list, that is cut; the sentence before code, or the one that
    what begins there refers to; or the term that the indented text which goes on there explains;
    or the heading, without a text of its own, above one of a word, such as "Fixed". It is empty
    where nothing is needed.
    """
    holders, headings = _holders(text, pieces), _headings_above(text, pieces)
    contexts, at = [], 0
    for start in starts:
        while at + 1 < len(pieces) and pieces[at + 1].start <= start:
            at += 1
        if pieces and headings[at] and start <= pieces[at].start:
            contexts.append(headings[at])
        else:
            contexts.append(_context(text, pieces, at, start, holders[at]) if pieces else "")
    return contexts


def _headings_above(text: str, pieces: Sequence[TextPiece]) -> list[str]:
    """Return for each heading of one word the one that it stands below, if that has no text."""
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for at, piece in enumerate(pieces):
        marks, _, words = text[piece.start : piece.end].partition(" ")
        is_heading = piece.kind == "heading" and not marks.strip("#")
        if is_heading:
            while path and path[-1][0] >= len(marks):
                path.pop()
        above.append(path[-1][1] if is_heading and path and len(words.split()) == 1 else "")
        if is_heading:
            is_empty = at + 1 < len(pieces) and pieces[at + 1].kind == "heading"
            path.append((len(marks), f"{marks} {words}\n\n" if is_empty and marks[1:] else ""))
    return above


def _context(
    text: str, pieces: Sequence[TextPiece], at: int, start: int, holder: TextPiece | None
) -> str:
    piece = pieces[at]
    before = pieces[at - 1] if at and pieces[at - 1].kind == "sentence" else None
    is_cut = bool(text[piece.start : start].strip())
    interrupted = at > 1 and pieces[at - 1].kind == "block" and pieces[at - 2].leads_in
    if interrupted and not is_cut and _GOES_ON.match(text, piece.start):
        return text[pieces[at - 2].start : start]
    if is_cut and (head := _head_of(text, piece, start)):
        return f"{head}\n"
    is_code = any(opens.match(text, piece.start) for opens in (_SHOWS_CODE, DOCTEST))
    needs_it = piece.kind == "block" and before and (before.leads_in or is_code)
    if before and needs_it and is_cut:
        return f"{text[before.start : before.end]}\n\n"
    refers = piece.leans and not is_cut and not _FIELD.match(text, piece.start)
    if before and (needs_it or refers):
        return text[before.start : start]
    return "" if is_cut or holder is None else _term_at(text, holder.start, start)


def _holders(text: str, pieces: Sequence[TextPiece]) -> list[TextPiece | None]:
    """Return for each piece the last one before it that is less indented."""
    holders: list[TextPiece | None] = []
    open_pieces: list[tuple[int, TextPiece]] = []
    for piece in pieces:
        begin = text.rfind("\n", 0, piece.start) + 1
        depth = _indentation(text[begin : piece.end])
        while open_pieces and open_pieces[-1][0] >= depth:
            open_pieces.pop()
        holders.append(open_pieces[-1][1] if open_pieces else None)
        open_pieces.append((depth, piece))
    return holders


def _term_at(text: str, start: int, end: int) -> str:
    """Return the term that a piece begins with, if what is indented below it goes on at `end`."""
    rows = text[text.rfind("\n", 0, start) + 1 : end].split("\n", _NEAR + 1)
    names = _kind(rows[0]) == "prose" and _WORDS.search(rows[0]) is not None
    return f"{rows[0].strip()}\n\n" if names and is_term(rows, 0) else ""


def _head_of(text: str, piece: TextPiece, start: int) -> str:
    """Return the lines of a table down to the rule below its head, or the line that opens code.

    It is empty unless the table or the code is cut after that.
    """
    if opening := _SHOWS_CODE.match(text, piece.start, start):
        return opening[0]
    rows = text[piece.start : start].split("\n", _LONGEST_HEAD)[:_LONGEST_HEAD]
    if _COLUMNS.match(rows[0]):
        below = next((n for n, row in enumerate(rows) if n and _COLUMNS.match(row)), None)
        return "\n".join(rows[: below + 1]) if below else ""
    at = piece.start
    while at < start and _ROW.match(line := text[at : text.find("\n", at, start)]):
        at += len(line) + 1
        if at > piece.start + len(line) + 1 and not _WORDS.search(line):
            return text[piece.start : at - 1]
    return ""


def whole_at(text: str, place: int, most: int = 0) -> list[Range]:
    """Return the ranges of `text`, in order, that are to be read together around a place.

    An item stands with those that hold it, as far as these have at most `most` words. Ranges are
    trimmed of blank lines and do not overlap; there is one unless the head of a table or the line
    before a list stands apart from the row or item. A text without words has none.
    """
    lines = list(lines_of(text))
    at = next((i for i, line in enumerate(lines) if place <= line.end), len(lines) - 1)
    worded = _nearest_with_words(lines, at)
    if worded is None:
        return []
    at = worded
    first_of_list = _list_around(text, lines, at)
    if first_of_list is not None and (item := _item(text, lines, at, first_of_list, most)):
        return item
    match lines[at].kind:
        case "code" | "admonition":
            first, last = _run(lines, at)
            block = without_blanks(text, lines[first].start, lines[last].end)
            return _with_lead_in(text, lines, first, block)
        case "row":
            return _row(text, lines, at)
        case _:
            return _sentence(text, lines, at, place)


def excerpt_at(text: str, place: int, most: int, most_with_block: int = 0) -> list[Range]:
    """Return the ranges of `text` to quote for a place: all of it, if it has at most `most` words.

    Of a longer text it is what is to be read together around the place, and as many of the
    sentences and blocks after and before that as fit. A table, and a list with the sentence that
    leads it in, is taken whole if that makes no more than `most_with_block` words (by default
    `most`), and no such sentence without it. Nothing is cut, so a block of code may stay longer.
    """
    start, end = _trimmed(text, 0, len(text))
    ranges = [(start, end)] if start < end else []
    if len(text.split()) <= most:
        return ranges
    limit = max(most, most_with_block)
    units = _units(text)
    around = next((unit for unit in units if unit.start <= place < unit.end), None)
    if around and _lists(text, around, _ROW) and _count(text, around.start, around.end) <= limit:
        ranges = [(around.start, around.end)]
    elif around and _is_table(around) and (rows := _first_rows(text, around, limit, place)):
        ranges = [(around.start, rows)]
    else:
        ranges = whole_at(text, place, most) or ranges
    low, high = ranges[0][0], ranges[-1][1]
    standing = _standing_from(units, low)
    if len(ranges) == 1 and _count(text, standing, high) <= limit:
        low, ranges = standing, [(standing, high)]
    if _count(text, low, high) > most:
        return ranges
    grown = True
    while grown:
        says_more = (unit for unit in units if unit.start >= high and unit.kind not in _NAMES)
        after = next(says_more, None)
        room = limit if after and _lists(text, after, _ROW, _ITEM, _SHOWS_CODE) else most
        fits = after and not _dangles(after) and _count(text, low, after.end) <= room
        end = after.end if after and fits else high
        before = next((unit for unit in reversed(units) if unit.end <= low), None)
        start = _standing_from(units, before.start) if before else low
        start = start if _count(text, start, end) <= most else low
        grown, low, high = (start, end) != (low, high), start, end
    return [(low, high)]


def _is_table(unit: TextPiece) -> bool:
    return unit.kind == "block" and not unit.items


def _first_rows(text: str, unit: TextPiece, most: int, place: int) -> int:
    """Return where the rows end that fit, the first one anyway, if the place is in a table's head.

    The head alone says nothing; it is 0 elsewhere.
    """
    end = below = 0
    is_grid = GRID_RULE.match(text, unit.start, unit.end) is not None
    for line in _LINE.finditer(text, unit.start, unit.end):
        if below:
            if end and _count(text, unit.start, line.end()) > most:
                break
            if not is_grid or GRID_RULE.match(line[0]):
                end = line.end()
        elif line.start() > place and not _ROW.match(line[0]):
            break
        elif line.start() > unit.start and _ROW.match(line[0]) and not _WORDS.search(line[0]):
            below = line.end()
    return end if place < below else 0


def _standing_from(units: Sequence[TextPiece], start: int) -> int:
    """Return where to begin so that the unit at `start` does not refer to one left out."""
    place = next((at for at, unit in enumerate(units) if unit.start == start), None)
    if place is None:
        return start
    while place and units[place].leans and units[place - 1].kind not in _NAMES:
        place -= 1
    return units[place].start


def _units(text: str) -> list[TextPiece]:
    """Return the pieces of a text, each sentence that leads a block in as one with that."""
    units: list[TextPiece] = []
    for piece in pieces_of(text):
        led_in = units and units[-1].kind == "sentence" and units[-1].leads_in
        if led_in and (piece.kind == "block" or _SINCE.match(text, piece.start)):
            piece = piece._replace(start=units.pop().start, leads_in=True)  # noqa: PLW2901
        units.append(piece)
    return units


def _dangles(unit: TextPiece) -> bool:
    """Return whether a sentence leads in what the text does not have."""
    return unit.kind == "sentence" and unit.leads_in


def _lists(text: str, unit: TextPiece, *begins: re.Pattern[str]) -> bool:
    """Return whether a unit is a block that is led in, or whose first line is one of these."""
    first = text[unit.start : unit.end].partition("\n")[0]
    begun = any(pattern.match(first) for pattern in begins)
    return unit.kind == "block" and (unit.leads_in or begun)


def _count(text: str, start: int, end: int) -> int:
    return len(text[start:end].split())


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines of a text; what a fence or an indented directive holds is of one kind."""
    fence, literal, start, block, table_end = "", _NEVER, 0, 0, -1
    before: Kind = "blank"
    is_session = False
    rows = text.split("\n")
    for number, raw in enumerate(rows):
        opens_session = is_session or DOCTEST.match(raw) is not None
        is_session = opens_session and not fence and bool(raw.strip())
        depth, mark = _indentation(raw), FENCE.match(raw)
        kind, opens = _kind(raw), False
        if fence:
            kind = "code"
            if mark and mark[1].startswith(fence) and not raw.strip().strip("`~> "):
                fence = ""
        elif mark and not underlines_title(rows, number):
            fence, kind, opens = mark[1], "code", True
        elif literal < depth or (literal < _NEVER and not raw.strip()):
            kind = "admonition"
        elif is_session or _RUBRIC.match(raw):
            literal, kind = _NEVER, "code" if is_session else "heading"
        elif number <= table_end or (table_end := simple_table_end(rows, number)) >= number:
            literal, kind = _NEVER, "row"
        elif kind == "admonition" or (kind == "prose" and raw.rstrip().endswith("::")):
            literal, opens = depth, kind == "admonition"  # What follows, indented, belongs to it.
        elif kind == "prose" and shows_code(rows, number):
            literal = depth + INDENTED - 1
        else:
            literal = _NEVER
            is_heading = _is_of_title(rows, number) or (kind == "prose" and is_term(rows, number))
            kind = "heading" if is_heading else kind
        block += opens or kind != before
        before = kind
        yield Line(start, start + len(raw), kind, block)
        start += len(raw) + 1


def is_head_of_ruled_table(text: str) -> bool:
    """Return whether a text is no more than the head of a table of reStructuredText."""
    first, *others = text.split("\n")
    return bool(others) and any(
        rule.match(first) and rule.match(others[-1]) for rule in (_COLUMNS, GRID_RULE)
    )


def simple_table_end(rows: Sequence[str], at: int) -> int:
    """Return the last line of the simple table whose first rule is there, or -1 if none is.

    One that was cut ends before the first empty line.
    """
    if not _COLUMNS.match(rows[at]):
        return -1
    rules = 1
    for number in range(at + 1, len(rows)):
        if _COLUMNS.match(rows[number]):
            rules += 1
            if not "".join(rows[number + 1 : number + 2]).strip():
                return number
            if rules == _MOST_RULES:
                break
    end = next((n for n in range(at + 1, len(rows)) if not rows[n].strip()), len(rows)) - 1
    return end if end > at else -1


def shows_code(rows: Sequence[str], at: int) -> bool:
    """Return whether a line at the margin ends with a colon, before an indented block.

    Four spaces after an empty line are code in Markdown, and in a list no more than a part of it.
    """
    line = rows[at].rstrip()
    if not line.endswith(":") or line[:1].isspace() or rows[at + 1 : at + 2] != [""]:
        return False
    after = next((row for row in rows[at + 2 : at + 4] if row.strip()), "").expandtabs(INDENTED)
    return _indentation(after) >= INDENTED


def underlines_title(rows: Sequence[str], at: int) -> bool:
    """Return whether a line is the rule below a title: one of tildes looks like a fence."""
    return at > 0 and _is_underlined(rows, at - 1)


def is_term(rows: Sequence[str], at: int) -> bool:
    """Return whether a line names what the text says that is indented below it."""
    line, above = rows[at], rows[at - 1] if at else ""
    begins = not above.strip() or _indentation(above) > _indentation(line)
    below = next((row for row in rows[at + 1 : at + 1 + _NEAR] if row.strip()), "")
    is_apart = not "".join(rows[at + 1 : at + 2]).strip()
    most = _LONGEST_TERM if is_apart else _LONGEST_TERM_ABOVE
    is_short = _TERM.match(line) is not None and len(line.split()) <= most
    is_rest = not (at or is_apart) and below.lstrip()[:1].islower()  # Of a sentence that was cut.
    return begins and is_short and not is_rest and _indentation(below) > _indentation(line)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_of_title(rows: Sequence[str], at: int) -> bool:
    """Return whether a line is a title that is underlined, or a rule below or above one."""
    is_above = _RULE.match(rows[at]) is not None and _is_underlined(rows, at + 1)
    return is_above or any(_is_underlined(rows, title) for title in (at - 1, at))


def _is_underlined(rows: Sequence[str], at: int) -> bool:
    """Return whether a line that begins a paragraph at the margin has a rule as long below it."""
    if not 0 <= at < len(rows) - 1:
        return False
    above = rows[at - 1].strip() if at else ""
    title, rule = rows[at].rstrip(), rows[at + 1].rstrip()
    is_overlined = _RULE.match(above) is not None
    begins = not above or is_overlined
    is_title = begins and _TITLE.match(title.lstrip() if is_overlined else title) is not None
    return is_title and len(rule) >= len(title) and _RULE.match(rule) is not None


def _kind(line: str) -> Kind:
    """Tell what a line is by itself."""
    if not line.strip():
        return "blank"
    for pattern, kind in _KINDS:
        if pattern.match(line):
            return kind
    return "prose"


def _nearest_with_words(lines: Sequence[Line], at: int) -> int | None:
    """Return the line at a place, or the next one that is neither blank nor a heading."""
    order = [*range(at, len(lines)), *range(at - 1, -1, -1)]
    return next((i for i in order if lines[i].kind not in {"blank", "heading"}), None)


def _run(lines: Sequence[Line], at: int) -> tuple[int, int]:
    """Return the first and the last line of a block."""
    first = last = at
    while first and lines[first - 1].block == lines[at].block:
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].block == lines[at].block:
        last += 1
    return first, last


def _with_lead_in(text: str, lines: Sequence[Line], first: int, block: Range) -> list[Range]:
    """Put the last sentence before a block in front of it, if it leads the block in."""
    before = first - 1
    while before >= 0 and lines[before].kind == "blank":
        before -= 1
    if before < 0 or lines[before].kind != "prose" or first - before > _NEAR:
        return [block]
    start, _ = _run(lines, before)
    leading = text[lines[start].start : lines[before].end]
    sentence = split_sentences(leading)[-1].strip()
    if not _leads_in(sentence, before_block=True):
        return [block]
    begin = lines[start].start + leading.rfind(sentence)
    return [(begin, begin + len(sentence)), block]


def _row(text: str, lines: Sequence[Line], at: int) -> list[Range]:
    first, _ = _run(lines, at)
    head = first
    while head < at and head + 1 < len(lines) and not _is_separator(text, lines[head + 1]):
        head += 1
    has_head = head + 1 < len(lines) and _is_separator(text, lines[head + 1])
    row = _row_of_lines(text, lines, at)
    if not has_head or at <= head + 1:
        return [row]
    return [(lines[first].start, lines[head + 1].end), row]


def _row_of_lines(text: str, lines: Sequence[Line], at: int) -> Range:
    """Return where the row is that holds a line.

    In a grid it is what stands between rules, in a simple table what begins in the first column.
    """
    first, last = _run(lines, at)
    opening = text[lines[first].start : lines[first].end].lstrip()
    low = high = at
    if GRID_RULE.match(opening):
        while low > first and not _is_separator(text, lines[low - 1]):
            low -= 1
        while high < last and not _is_separator(text, lines[high + 1]):
            high += 1
    elif _COLUMNS.match(opening):
        column = _depth(text, lines[first]) + len(opening.split()[0])
        while low > first and not text[lines[low].start : lines[low].start + column].strip():
            low -= 1
        while (
            high < last and not text[lines[high + 1].start : lines[high + 1].start + column].strip()
        ):
            high += 1
    return lines[low].start, lines[high].end


def _is_separator(text: str, line: Line) -> bool:
    return line.kind == "row" and not _WORDS.search(text[line.start : line.end])


def _item(text: str, lines: Sequence[Line], at: int, first: int, most: int) -> list[Range]:
    """Return the item that holds a line, with what leads its list in, which begins at `first`.

    A row stands for itself where none that holds it fits.
    """
    holders = [
        (line.start, lines[end].end)
        for before, line in enumerate(lines[first : at + 1], first)
        if line.kind == "item" and (end := _held_end(text, lines, before)) >= at
    ]
    fitting = [holder for holder in holders if _count(text, *holder) <= most]
    if not fitting and lines[at].kind == "row":
        return []
    return _with_lead_in(text, lines, first, (fitting or holders[-1:])[0])


def _list_around(text: str, lines: Sequence[Line], at: int) -> int | None:
    """Return the first line of the list that holds a line, if one does."""
    first = 0
    while first <= at:
        last = _block_end(text, lines, first)
        if at <= last:
            return first if lines[first].kind == "item" else None
        first = last + 1
    return None


def _block_end(text: str, lines: Sequence[Line], first: int) -> int:
    """Return the last line of the block, or of the whole list, that begins there."""
    is_list = lines[first].kind == "item"
    return _held_end(text, lines, first, items=True) if is_list else _run(lines, first)[1]


def _held_end(text: str, lines: Sequence[Line], item: int, *, items: bool = False) -> int:
    """Return the last line of what an item holds: what goes on with it, or is indented below it.

    With `items`, those that follow belong to it, with empty lines between them or not.
    """
    margin, last = _depth(text, lines[item]), item
    for at in range(item + 1, len(lines)):
        line, before = lines[at], lines[last]
        if not text[line.start : line.end].strip():  # Within code, too.
            continue
        goes_on = at == last + 1 and line.kind == "prose" and before.kind in {"item", "prose"}
        is_led_in = at == last + 1 and line.block > before.block and _ends_with_colon(text, before)
        is_fenced = line.kind == "code" and (line.block == before.block or is_led_in)
        is_next = items and line.kind == "item"
        if not (goes_on or is_fenced or is_next or _depth(text, line) > margin):
            break
        last = at
    return last


def _depth(text: str, line: Line) -> int:
    return line.end - line.start - len(text[line.start : line.end].lstrip())


def _sentence(text: str, lines: Sequence[Line], at: int, place: int) -> list[Range]:
    first, last = _run(lines, at)
    start, end = lines[first].start, lines[last].end
    sentences: list[Range] = []
    begin = start
    for piece in split_sentences(text[start:end]):
        sentences.append((begin, begin + len(piece)))
        begin += len(piece)
    index = next((i for i, (_, stop) in enumerate(sentences) if place < stop), len(sentences) - 1)
    low, high = sentences[index]
    if index and _leans(text[low:high].lstrip()):
        low = sentences[index - 1][0]
    sentence = _trimmed(text, low, high)
    if index == len(sentences) - 1 and _leads_in(text[slice(*sentence)], before_block=True):
        return [sentence, *_introduced(text, lines, last)]
    return [sentence]


def _introduced(text: str, lines: Sequence[Line], last: int) -> list[Range]:
    """Return the block that a line introduces, whole."""
    after = last + 1
    while after < len(lines) and lines[after].kind == "blank":
        after += 1
    if after >= len(lines) or lines[after].kind in {"prose", "heading"} or after - last > _NEAR:
        return []
    end = _block_end(text, lines, after)
    return [without_blanks(text, lines[after].start, lines[end].end)]


def without_blanks(text: str, start: int, end: int) -> Range:
    """Leave blank lines at both ends out; the first line keeps its indentation."""
    part = text[start:end]
    first = len(part) - len(part.lstrip())
    return start + part.rfind("\n", 0, first) + 1, start + len(part.rstrip())


def _trimmed(text: str, start: int, end: int) -> Range:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())
