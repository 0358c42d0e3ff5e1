"""Citation marks: how an answer says which strips a sentence rests on, as ``[3]`` or ``[1, 2]``.

Everything that writes, reads, changes or removes marks uses this module, so their form is known
here, and in `serve/static/citations.js`, which a test compares with it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

_NUMBERS = r"\d{1,4}(?:\s*[,;]\s*\d{1,4})*"
PATTERN = rf"\[{_NUMBERS}\]"
"""A mark, as a part of a regular expression without groups."""
SINGLE = r"\[\d{1,4}\]"
"""A mark of one number, also as a part of a regular expression."""
# White space is matched from its beginning only: from each of its places it would take quadratic
# time.
_MARK = re.compile(rf"(?:(?<!\s)\s+)?({PATTERN})")
_NUMBER = re.compile(r"\d+")
_NAMES = r"(?:passages?|sources?|documents?)(?:\snumbers?)?[\s=:#]{1,3}"
_OTHER_FORMATS = (
    rf"\[{_NAMES}[\"“]?(?P<square>{_NUMBERS})[\"”]?\]",
    rf"\({_NAMES}(?P<round>{_NUMBERS})\)",
    r"【(?P<black>\d{1,4})(?:†[^【】\n]{0,40})?】",
    r"\[\^(?P<note>\d{1,4})\]",
    r"<sup>\[?(?P<raised>\d{1,4}(?:\s?,\s?\d{1,4})*)\]?</sup>",
    r"\[(?P<first>\d{1,3})\s?[-–]\s?(?P<last>\d{1,3})\]",
    r"(?<=\S)\s\((?P<bare>\d{1,2}(?:,\s?\d{1,2})*)\)(?=[.,;:!?]|\s*(?:\n|\Z))",
)
"""Marks as models write them who were not trained to write ours."""
_OTHER = re.compile("|".join(_OTHER_FORMATS), re.IGNORECASE)
_LONGEST_RANGE = 20


class Mark(NamedTuple):
    """One mark in a text."""

    start: int
    """Of the mark, or of the white space before it."""
    bracket: int
    end: int
    numbers: list[int]


def as_mark(*numbers: int) -> str:
    """Write the mark that cites strips, or passages, by their numbers."""
    return f"[{', '.join(map(str, numbers))}]"


def in_our_format(text: str, known: Collection[int] | None = None) -> str:
    """Write marks of other formats, such as ``[Passage 4]``, ``【4†L1】`` or ``[^4]``, as ``[4]``.

    A number in round brackets is a mark only if it is `known` and the text has no other marks.
    """
    has_marks = _MARK.search(text) is not None

    def written(found: re.Match[str]) -> str:
        if found["bare"]:
            numbers = _numbers(found["bare"])
            is_mark = known is not None and not has_marks and set(numbers) <= {*known}
            return f" {as_mark(*numbers)}" if is_mark else found[0]
        if found["first"]:
            first, last = int(found["first"]), int(found["last"])
            is_range = first < last < first + _LONGEST_RANGE
            return as_mark(*range(first, last + 1)) if is_range else found[0]
        return as_mark(*_numbers(found[found.lastgroup or 0]))

    return _OTHER.sub(written, text)


def marks_of(text: str) -> Iterator[Mark]:
    """Find the marks of a text from left to right."""
    for match in _MARK.finditer(text):
        yield Mark(match.start(), match.start(1), match.end(), _numbers(match[1]))


def with_numbers(text: str, change: Callable[[Sequence[int]], Sequence[int]]) -> str:
    """Replace the numbers of each mark by those that `change` returns for them.

    A mark left without numbers is removed, together with the white space before it.
    """

    def replace(match: re.Match[str]) -> str:
        numbers = _numbers(match[1])
        changed = change(numbers)
        if not changed:
            return ""
        if [*changed] == numbers:
            return match[0]
        if len(changed) != len(numbers):
            return match[0].replace(match[1], as_mark(*changed))
        following = iter(changed)  # What stands between the numbers stays.
        return _NUMBER.sub(lambda _: str(next(following)), match[0])

    return _MARK.sub(replace, text)


def without_marks(text: str) -> str:
    """Remove the marks of a text, together with the white space before each."""
    return with_numbers(text, lambda _: ())


def _numbers(mark: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(mark)]
