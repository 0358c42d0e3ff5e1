"""Validate what an answer refers to: a citation or link to nothing is removed, and counted."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from crag.state import Citation

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_MARK = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(\s*<?([^\s)>]*)[^)\n]*\)")
_ADDRESS = re.compile(r"\b(?:https?|ftp|data|javascript|file):[^\s<>\])\"'”»]+", re.IGNORECASE)
_AFTER = ".,;:!?"
_GONE = "(link removed)"


class Validated(NamedTuple):
    """An answer whose every citation refers to a strip."""

    answer: str
    citations: list[Citation]
    """Those the answer refers to, by number."""
    removed: list[int]
    """Numbers that referred to nothing, in the order of the text."""
    links: list[str]
    """Addresses that stood in no strip, in the order of the text."""


def validate(answer: str, available: Sequence[Citation]) -> Validated:
    """Remove the citations of `answer` whose number is not `available`; code is left alone.

    A link stays if it is the address of a strip's source or stands in a strip: else text from
    outside could make a model write an address that carries something away. Pictures, which are
    fetched without a click, never stay.
    """
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

    links: list[str] = []
    pieces = _CODE.split(answer)
    pieces[::2] = [
        _MARK.sub(check, _without_links(prose, available, links)) for prose in pieces[::2]
    ]
    return Validated("".join(pieces).strip(), [known[n] for n in sorted(used)], removed, links)


def _without_links(prose: str, available: Sequence[Citation], removed: list[str]) -> str:
    """Return prose without the links and pictures that no strip holds; note them in `removed`."""

    def stands(address: str) -> bool:
        return any(address in (entry["source"]["url"], *_addresses(entry)) for entry in available)

    def label_of(link: re.Match[str]) -> str:
        picture, label, address = link.groups()
        if stands(address) and not picture:
            return link[0]
        removed.append(address)
        return f"[{label}]" if label.isdecimal() else label

    def bare(found: re.Match[str]) -> str:
        address = found[0].rstrip(_AFTER)
        if stands(address):
            return found[0]
        removed.append(address)
        return _GONE + found[0][len(address) :]

    return _ADDRESS.sub(bare, _LINK.sub(label_of, prose))


def _addresses(entry: Citation) -> list[str]:
    return [found.rstrip(_AFTER) for found in _ADDRESS.findall(entry["text"])]
