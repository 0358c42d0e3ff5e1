"""Where the characters of a chunk stand in its file.

The metadata `lines` of a chunk say it: ``10-11 30-40`` means that its first two lines are lines 10
and 11 of the file, and the next eleven are lines 30 to 40. A part of a table thus has the numbers
of the header that it repeats and then its own. Lines count from 1.
"""

from collections.abc import Iterable
from itertools import chain, islice, pairwise


def lines_written(numbers: Iterable[int]) -> str:
    """Write the line numbers of a chunk's lines, in their order, as ranges."""
    found = list(numbers)
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(found), 1) if b != a + 1), len(found)]
    ranges = ((found[start], found[end - 1]) for start, end in pairwise(breaks) if end > start)
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def line_numbers(lines: str, most: int | None = None) -> list[int]:
    """Return the line of the file for each line of a chunk, from its metadata `lines`.

    No more than `most`, which a chunk has lines: metadata of others may name any number.
    """
    ranges = (part.partition("-") for part in lines.split())
    numbers = (range(int(first), int(last or first) + 1) for first, _, last in ranges)
    return list(islice(chain.from_iterable(numbers), most))


def lines_between(text: str, lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and last line of the file for the characters from `start` to `end`.

    `text` and `lines` are a chunk's text and metadata; of blank characters at both ends nothing is
    counted.
    """
    numbers = line_numbers(lines, text.count("\n") + 1)
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    last = max(first, start + len(part.rstrip()) - 1)
    found = [numbers[text.count("\n", 0, offset)] for offset in (first, last)]
    return min(found), max(found)


def lines_of_part(text: str, lines: str, start: int, end: int) -> str:
    """Return the metadata `lines` of the characters from `start` to `end` of a chunk."""
    first = text.count("\n", 0, start)
    return lines_written(line_numbers(lines, first + 1 + text.count("\n", start, end))[first:])
