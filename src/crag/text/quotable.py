"""The parts of a text that can be quoted: sentences, list items, table rows and blocks of code.

A part stands where its offsets say. What a reader needs with it (the sentence before a list, the
list after a colon, the header of a table) is added by `completed`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

Kind = Literal["sentence", "item", "header", "row", "code", "heading"]
MOST_CHARACTERS = 900
"""A list or a block of code that is longer is not added to the sentence before it."""
_FENCE = re.compile(r"\s*(```|~~~)")
_CLOSING_FENCE = re.compile(r"\s*(```|~~~)[ \t]*")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+\S")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=~^\"'#*.`_-]*$")
_HEADING = re.compile(r"#{1,6}\s|\.\. |:\w+:`?[^`]*`?$|<[^>]+>$")


class Part(NamedTuple):
    """A range of a text."""

    kind: Kind
    start: int
    end: int
    block: int
    """Parts of one paragraph, list, table or block of code share a number."""


class _Line(NamedTuple):
    start: int
    text: str
    kind: Kind | Literal["blank", "rule"]

    @property
    def end(self) -> int:
        return self.start + len(self.text.rstrip())


def parts_of(text: str) -> list[Part]:
    """Cut a text into parts, in order; headings, rules and markup between them are left out."""
    found: list[Part] = []
    for number, (kind, lines) in enumerate(_blocks(_lines(text))):
        start, end = lines[0].start, lines[-1].end
        match kind:
            case "sentence":
                found += _sentences(text, start, end, number)
            case "item":
                found += _items(lines, number)
            case "row":
                found += _rows(text, lines, number)
            case "code":
                found.append(Part("code", start, end, number))
            case _:
                pass
    return [part for part in found if part.end > part.start]


def completed(text: str, parts: Sequence[Part], chosen: int) -> tuple[int, int, str]:
    """Return the range to quote for a part, and the words to quote; a sentence is put on one line.

    A sentence that ends in a colon brings the list or code after it; an item or code brings the
    sentence that announces it; a row brings the header of its table.
    """
    part = parts[chosen]
    before = [other for other in parts[:chosen] if other.block != part.block]
    block = [other for other in parts if other.block == part.block]
    after = [other for other in parts[chosen + 1 :] if other.block != part.block]
    start, end = part.start, part.end
    if part.kind == "sentence":
        if not (_announces(text, part) and part == block[-1] and after):
            return start, end, _plain(text, part)
        following = [other for other in after if other.block == after[0].block]
        if following[0].kind == "sentence" or following[-1].end - start > MOST_CHARACTERS:
            return start, end, _plain(text, part)
        end = following[-1].end
    elif part.kind in {"item", "code"} and before and _announces(text, before[-1]):
        if block[-1].end - before[-1].start <= MOST_CHARACTERS:
            start, end = before[-1].start, block[-1].end
        else:
            return start, end, f"{_plain(text, before[-1])}\n{text[start:end].strip()}"
    elif part.kind == "row" and block[0].kind == "header":
        return start, end, f"{text[block[0].start : block[0].end]}\n{text[start:end]}"
    end = _with_fence(text, start, end)
    return start, end, text[start:end].strip()


def _announces(text: str, part: Part) -> bool:
    return part.kind == "sentence" and text[part.start : part.end].rstrip("*_` ").endswith(":")


def _with_fence(text: str, start: int, end: int) -> int:
    """Return the end behind the fence that closes a block of code, if the range opens one."""
    opened = sum(_FENCE.match(line) is not None for line in text[start:end].splitlines()) % 2
    closing = _CLOSING_FENCE.match(text, end) if opened else None
    return closing.end() if closing else end


def _plain(text: str, part: Part) -> str:
    return " ".join(text[part.start : part.end].split())


def _lines(text: str) -> Iterator[_Line]:
    fence, start, literal = "", 0, -1
    for raw in text.splitlines(keepends=True):
        line = raw.rstrip("\r\n")
        indent = len(line) - len(line.lstrip())
        mark = _FENCE.match(line)
        if fence or mark:
            yield _Line(start, line, "rule" if mark else "code")
            if mark:
                fence = "" if fence else mark[1]
        elif not line.strip():
            yield _Line(start, line, "blank")
        elif literal >= 0 and indent > literal:
            yield _Line(start, line, "code")
        else:
            literal = indent if line.rstrip().endswith("::") else -1
            yield _Line(start, line, _kind(line))
        start += len(raw)


def _kind(line: str) -> Kind | Literal["rule"]:
    if _RULE.match(line):
        return "rule"
    if _HEADING.match(line):
        return "heading"
    if _ROW.match(line):
        return "row"
    return "item" if _ITEM.match(line) else "sentence"


def _blocks(lines: Iterator[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    """Yield runs of lines of a kind; lines indented below an item belong to it."""
    block: list[_Line] = []
    for line in lines:
        if block and _goes_on(block, line):
            block.append(line)
            continue
        if block:
            yield block[0].kind, [part for part in block if part.kind not in {"blank", "rule"}]
        block = [] if line.kind in {"blank", "rule", "heading"} else [line]
    if block:
        yield block[0].kind, [part for part in block if part.kind not in {"blank", "rule"}]


def _goes_on(block: Sequence[_Line], line: _Line) -> bool:
    kind, indented = block[0].kind, line.text.startswith((" ", "\t"))
    match kind:
        case "item":
            after_blank = block[-1].kind == "blank"
            return line.kind in {"item", "blank"} or (
                line.kind in {"sentence", "code"} and (indented or not after_blank)
            )
        case "row":
            return line.kind in {"row", "rule"}
        case "code":
            return line.kind in {"code", "blank"}
        case _:
            return line.kind == "sentence"


def _items(lines: Sequence[_Line], number: int) -> Iterator[Part]:
    starts = [i for i, line in enumerate(lines) if line.kind == "item"] + [len(lines)]
    for begin, end in pairwise(starts):
        yield Part("item", lines[begin].start, lines[end - 1].end, number)


def _rows(text: str, lines: Sequence[_Line], number: int) -> Iterator[Part]:
    """Yield the rows of a table; the first is its header if a rule stands below it."""
    ends = [line.start for line in lines[1:]] + [lines[-1].end]
    for place, (line, end) in enumerate(zip(lines, ends, strict=True)):
        ruled = place == 0 and "-" in text[line.end : end]
        yield Part("header" if ruled else "row", line.start, line.end, number)


def _sentences(text: str, start: int, end: int, number: int) -> Iterator[Part]:
    pieces: list[str] = list(segment("en", text[start:end]))
    if "".join(pieces) != text[start:end]:  # A segmenter may lose characters; then it is one part.
        pieces = [text[start:end]]
    for piece in pieces:
        left = start + len(piece) - len(piece.lstrip())
        yield Part("sentence", left, start + len(piece.rstrip()), number)
        start += len(piece)
