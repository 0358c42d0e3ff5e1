"""Paragraphs of plain text, as they come from text files, PDF and search services."""

import re

_BREAK = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
FEWEST_CHARACTERS = 11
"""Shorter paragraphs are left out: the official code reads only those of more than 10."""
WIDEST_LINE = 120
"""Characters; text with a longer line was not wrapped at a width."""
_FULL = 0.7
"""Share of the widest line from which on a line was perhaps wrapped rather than ended."""


def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of plain text: what stands between empty lines, each on one line.

    Text without an empty line is taken line by line, since some services write each paragraph on a
    line; but where no line is longer than `WIDEST_LINE`, lines that were wrapped are joined.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n").strip()
    parts = _BREAK.split(text) if _BREAK.search(text) else _unwrapped(text.split("\n"))
    joined = (" ".join(part.split()) for part in parts)
    return tuple(part for part in joined if len(part) >= FEWEST_CHARACTERS)


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
