"""Headings of a Markdown text."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_DEEPEST = 6


class Heading(NamedTuple):
    """One heading."""

    start: int
    """Offset of its first ``#`` into the text."""
    level: int
    """From 1 to 6."""
    title: str


def headings(text: str) -> list[Heading]:
    """List the ATX headings in order, except inside fenced code."""
    return list(_headings(text))


def title_of(found: Sequence[Heading]) -> str:
    """Return the first heading of level 1, or an empty text."""
    return next((heading.title for heading in found if heading.level == 1), "")


def section_paths(found: Sequence[Heading], title: str) -> list[str]:
    """Return for each heading the path to it (``Use > Install``), without the document's title."""
    paths, open_titles = [], [""] * _DEEPEST
    for heading in found:
        open_titles[heading.level - 1 :] = [heading.title] + [""] * (_DEEPEST - heading.level)
        path = [name for name in open_titles if name]
        paths.append(" > ".join(path[1:] if path[:1] == [title] else path))
    return paths


def _headings(text: str) -> Iterator[Heading]:
    fence, start = "", 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence and (match := _HEADING.match(line.rstrip("\r\n"))) and match[2]:
            yield Heading(start, len(match[1]), match[2])
        start += len(line)
