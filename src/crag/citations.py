"""Validate the citations of an answer: a citation to nothing is removed, and counted."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from crag.state import Citation

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_MARK = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class Validated(NamedTuple):
    """An answer whose every citation refers to a strip."""

    answer: str
    citations: list[Citation]
    """Those the answer refers to, by number."""
    removed: list[int]
    """Numbers that referred to nothing, in the order of the text."""


def validate(answer: str, available: Sequence[Citation]) -> Validated:
    """Remove the citations of `answer` whose number is not `available`; code is left alone."""
    known = {citation["number"]: citation for citation in available}
    used: set[int] = set()
    removed: list[int] = []

    def check(mark: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", mark[1])]
        valid = [number for number in numbers if number in known]
        used.update(valid)
        removed.extend(number for number in numbers if number not in known)
        if len(valid) == len(numbers):
            return mark[0]
        leading = mark[0][: mark[0].index("[")]
        return leading + f"[{', '.join(map(str, valid))}]" if valid else ""

    pieces = _CODE.split(answer)
    pieces[::2] = [_MARK.sub(check, prose) for prose in pieces[::2]]
    return Validated("".join(pieces).strip(), [known[n] for n in sorted(used)], removed)
