"""Where the lines of a chunk stand in its file.

The metadata `lines` of a chunk say it, with one entry for each of its lines: ``12-15 16 3*4`` means
that its first line comes from lines 12 to 15 of the file, the next one from line 16, and the next
four from line 3, or page 3, slide 3, row 3: `position` names the unit. All count from 1.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

Place = tuple[int, int]
"""The first and last line, page, … of the file."""


def lines_written(places: Iterable[Place]) -> str:
    """Write the places of a chunk's lines, in their order."""
    return " ".join(_written(place, len(list(same))) for place, same in groupby(places))


def line_places(lines: str, most: int | None = None) -> list[Place]:
    """Return the place in the file of each line of a chunk, from its metadata.

    At most `most` places, one for each line of the chunk: metadata written by another program may
    name any number of lines.
    """
    return list(islice((place for part in lines.split() for place in _read(part)), most))


def _written(place: Place, times: int) -> str:
    first, last = place
    named = f"{first}" if first == last else f"{first}-{last}"
    return named if times == 1 else f"{named}*{times}"


def _read(part: str) -> Iterator[Place]:
    named, _, times = part.partition("*")
    first, _, last = named.partition("-")
    yield from ((int(first), int(last or first)) for _ in range(int(times or 1)))
