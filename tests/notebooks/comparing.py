"""What a notebook shows, cell by cell, and whether two runs show the same."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from nbformat import NotebookNode

TEXTS = ("text/plain", "text/markdown")
"""What is compared. Not compared are pictures (`image/png`), whose bytes depend on the machine's
fonts and on rounding: the text beside each of them says what it shows, and is compared."""
TOLERANCE = 0.011
"""Scores may differ in the last digit between processors."""
_NUMBER = re.compile(r"[+\-−]?\d+\.\d+")
Shown = tuple[str, str]
"""A cell and a kind of output, and the text."""


def shown(notebook: NotebookNode) -> list[Shown]:
    """Return all texts of a notebook's outputs, in order."""
    return [
        (f"{cell.id}: {kind}", text)
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind, text in _texts(output)
    ]


def differences(committed: NotebookNode, now: NotebookNode) -> list[str]:
    """Say what two runs show differently; nothing if they agree."""
    pairs = zip_longest(shown(committed), shown(now), fillvalue=("nothing", ""))
    return [
        f"{before[0]}\n--- committed\n{before[1]}\n+++ now ({after[0]})\n{after[1]}"
        for before, after in pairs
        if before[0] != after[0] or not alike(before[1], after[1])
    ]


def alike(first: str, second: str) -> bool:
    """Compare texts: words and whole numbers exactly, decimals up to their last digit.

    Bold type does not count: it marks the best of scores that may be all but equal.
    """
    first, second = (text.replace("**", "") for text in (first, second))
    if _NUMBER.sub("#", first) != _NUMBER.sub("#", second):
        return False
    pairs = zip(_numbers(first), _numbers(second), strict=True)
    return all(abs(one - other) <= TOLERANCE for one, other in pairs)


def _texts(output: NotebookNode) -> Iterator[Shown]:
    if output.output_type == "stream":
        yield output.name, output.text
        return
    for kind in TEXTS:
        if kind in output.get("data", {}):
            yield kind, output.data[kind]


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in _NUMBER.findall(text)]
