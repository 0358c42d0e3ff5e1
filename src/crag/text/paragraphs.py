"""Paragraphs of plain text, as they come from text files, PDF and search services."""

import re
from itertools import pairwise

_BREAK = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
FEWEST_CHARACTERS = 11
"""Shorter paragraphs are left out: the official code reads only those of more than 10."""
WIDEST_LINE = 120
"""Characters; text with a longer line was not wrapped at a width."""
_FULL = 0.7
"""Share of the widest line from which on a line was perhaps wrapped rather than ended."""
_USUAL = 75
"""Per cent of the lines of a page that are no longer than its usual lines of prose."""
_ITEM = re.compile(r"\s*(?:[-*+•‣–]|\(?\d{1,3}[.)])\s+\S")


def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of plain text: what stands between empty lines, each on one line.

    Text without an empty line is taken line by line, since some services write each paragraph on a
    line; but where no line is longer than `WIDEST_LINE`, lines that were wrapped are joined.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n").strip()
    parts = _BREAK.split(text) if _BREAK.search(text) else _unwrapped(text.split("\n"))
    joined = (" ".join(part.split()) for part in parts)
    return tuple(part for part in joined if len(part) >= FEWEST_CHARACTERS)


def with_paragraphs_apart(page: str) -> str:
    """Put an empty line between the paragraphs, rows and titles of a page that has none.

    A line goes on in the next one if it ends within a sentence, and either is about as long as that
    one and as most lines of prose are, or is followed by a small letter.
    """
    lines = page.split("\n")
    if _BREAK.search(page) or not lines[1:]:
        return page
    longer = sorted(len(line.rstrip()) for line in lines)[_USUAL * len(lines) // 100]
    parts = [lines[0]]
    for before, line in pairwise(lines):
        fits = max(longer, min(len(line.rstrip()), WIDEST_LINE))
        is_full = len(before.rstrip()) >= _FULL * fits or line[:1].islower()
        goes_on = is_full and not _SENTENCE_END.search(before.rstrip()) and not _ITEM.match(line)
        is_near = goes_on or (_ITEM.match(line) and _ITEM.match(before))
        parts += ["\n" if is_near else "\n\n", line]
    return "".join(parts)


def _unwrapped(lines: list[str]) -> list[str]:
    """Join each line that is nearly full and ends within a sentence with the next one."""
    widest = max(map(len, lines))
    if widest > WIDEST_LINE:
        return lines
    joined, is_open = [""], False
    for line in lines:
        if is_open:
            joined[-1] += f"\n{line}"
        else:
            joined.append(line)
        is_full = len(line.rstrip()) >= _FULL * widest
        is_open = is_full and not _SENTENCE_END.search(line.rstrip())
    return joined
