"""Where the characters of a chunk stand in its file.

The metadata `lines` of a chunk say it: ``10-11 30-40`` means that its first two lines are lines 10
and 11 of the file, and the next eleven are lines 30 to 40. A part of a table thus has the numbers
of the header that it repeats and then its own. Where places are pages, slides or chapters, the
metadata `places` say it in the same way: ``3*5 4*2`` means that five lines stand on page 3 and two
on page 4. All count from 1.
"""

from collections.abc import Iterable
from itertools import chain, groupby, islice, pairwise


def places_written(numbers: Iterable[int]) -> str:
    """Write the page, slide or chapter of each of a chunk's lines, in their order."""
    return " ".join(f"{number}*{len(list(same))}" for number, same in groupby(numbers))


def lines_written(numbers: Iterable[int]) -> str:
    """Write the line numbers of a chunk's lines, in their order, as ranges."""
    lines = list(numbers)
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(lines), 1) if b != a + 1), len(lines)]
    ranges = ((lines[start], lines[end - 1]) for start, end in pairwise(breaks) if end > start)
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def line_numbers(lines: str, most: int | None = None) -> list[int]:
    """Return the line, or page, of the file for each line of a chunk, from its metadata.

    At most `most` numbers, one for each line of the chunk: metadata written by another program may
    name any number of lines.
    """
    return list(islice(chain.from_iterable(map(_numbers, lines.split())), most))


def _numbers(part: str) -> Iterable[int]:
    number, star, times = part.partition("*")
    if star:
        here = int(number)
        return (here for _ in range(int(times)))
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def lines_between(text: str, lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and last line, or page, of the file for the characters `start` to `end`.

    `text` and `lines` are a chunk's text and metadata; of blank characters at both ends nothing is
    counted.
    """
    numbers = line_numbers(lines, text.count("\n") + 1)
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    last = max(first, start + len(part.rstrip()) - 1)
    ends = [numbers[text.count("\n", 0, offset)] for offset in (first, last)]
    return min(ends), max(ends)


def lines_of_part(text: str, lines: str, start: int, end: int) -> str:
    """Return the metadata `lines` or `places` of the characters `start` to `end` of a chunk."""
    first = text.count("\n", 0, start)
    numbers = line_numbers(lines, first + 1 + text.count("\n", start, end))[first:]
    return places_written(numbers) if "*" in lines else lines_written(numbers)
