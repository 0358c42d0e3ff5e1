"""The code of an answer, which stays as it is written, and the prose around it."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}(`{3,}|~{3,})([^\n]*)")
_ENDS_PARAGRAPH = re.compile(r"[ \t]*(?:$|[#>|]|[-*+][ \t]|\d{1,9}[.)][ \t]|[=-]+[ \t]*$)")
_TICKS = re.compile(r"(\\*)(`+)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def prose_and_code(source: str) -> list[str]:
    """Split an answer into its pieces: prose, code, prose and so on, from prose to prose.

    Code stands in a fence, which lasts to the next empty line where nothing closes it, or between
    backticks of one paragraph.
    """
    pieces, end = [], 0
    for start, after, _ in _code(source):
        pieces += [source[end:start], source[start:after]]
        end = after
    return [*pieces, source[end:]]


def fences_closed(source: str) -> str:
    """Close the fences of an answer that nothing closes before their first empty line."""
    pieces, end = [], 0
    for start, after, fence in _code(source):
        code = source[start:after].rstrip()
        if fence and not ("\n" in code and _closes(code, fence)):
            pieces += [source[end:start], f"{code}\n{fence}\n"]
            end = after
    return "".join([*pieces, source[end:]])


def _code(source: str) -> Iterator[tuple[int, int, str]]:
    """Yield where code stands, and what opens its fence, if it has one."""
    lines = [(found[0], found.start()) for found in _LINE.finditer(source)]
    at = begin = 0
    while at < len(lines):
        line, start = lines[at]
        opening = _FENCE.match(line)
        is_fence = opening is not None and not (opening[1][0] == "`" and "`" in opening[2])
        if is_fence or _ENDS_PARAGRAPH.match(line.rstrip("\n")):
            yield from ((*span, "") for span in _spans(source, begin, start))
            begin = start
        at += 1
        if opening is not None and is_fence:
            at = _after_fence(lines, at, opening[1])
            begin = lines[at][1] if at < len(lines) else len(source)
            yield start, begin, opening[1]
    yield from ((*span, "") for span in _spans(source, begin, len(source)))


def _after_fence(lines: list[tuple[str, int]], first: int, ticks: str) -> int:
    empty = len(lines)
    for at in range(first, len(lines)):
        if _closes(lines[at][0], ticks):
            return at + 1
        if empty == len(lines) and not lines[at][0].strip():
            empty = at
    return empty


def _closes(code: str, ticks: str) -> bool:
    last = code.rstrip("\n").rpartition("\n")[2].strip()
    return last.startswith(ticks) and not last.strip(ticks[0])


def _spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what stands between backticks of one number."""
    runs = list(_TICKS.finditer(source, start, end))
    latest: dict[int, int] = {}
    following = [0] * len(runs)
    for at in reversed(range(len(runs))):
        size = len(runs[at][2])
        escaped = len(runs[at][1]) % 2
        following[at] = latest.get(size - escaped, len(runs))
        latest[size] = at
    at = 0
    while at < len(runs):
        close = following[at]
        if close == len(runs):
            at += 1
            continue
        begin = runs[at].start(2) + len(runs[at][1]) % 2
        if begin < runs[at].end():
            yield begin, runs[close].end()
            at = close + 1
        else:
            at += 1
