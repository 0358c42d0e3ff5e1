"""A page of a PDF as it looks, with quotations marked, drawn by PDFium."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import ContentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WIDTH, _HEIGHT = 1200, 2400
"""Pixels of a picture at most."""
_MARKER = (255, 232, 120)
"""Red, green and blue that a mark lets through."""


class Picture(NamedTuple):
    """A page of a PDF as it looks."""

    png: bytes
    marked: float
    """Share of the page above the first quotation that stands on it; 0 without one."""


def picture_of_page(file: Path, number: int, quotations: Sequence[str]) -> Picture:
    """Return a page, counted from 1; what of the quotations stands on it is marked.

    Raises:
        ContentError: PDFium cannot read the file, or it has no such page.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(file) as document:
            if not 1 <= number <= len(document):
                raise ContentError(f"page {number} of {len(document)} does not exist")
            page = document[number - 1]
            width, height = page.get_size()
            scale = min(_WIDTH / max(width, 1), _HEIGHT / max(height, 1))
            bitmap = page.render(scale=scale, rev_byteorder=True)
            pixels = bitmap.to_numpy()[..., :3].copy()
            to_pixels = bitmap.get_posconv(page).to_bitmap
            tops = list[int]()
            for left, bottom, right, top in _boxes(page.get_textpage(), quotations):
                (x, y), (to_x, to_y) = to_pixels(left, top), to_pixels(right, bottom)
                _mark(pixels, sorted((x, to_x)), sorted((y, to_y)))
                tops.append(max(0, min(y, to_y)))
            return Picture(_png(pixels), min(tops, default=0) / len(pixels))
    except PdfiumError as error:
        raise ContentError("a damaged or encrypted PDF") from error


def _boxes(text: Any, quotations: Sequence[str]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the place of each line of each quotation.

    Neither white space counts nor hyphens, since words cut at the end of a line are whole in
    quotations, nor the marks of Markdown.
    """
    from pypdfium2.raw import FPDFText_GetUnicode

    characters = [chr(FPDFText_GetUnicode(text, at)) for at in range(text.count_chars())]
    places = [at for at, character in enumerate(characters) if _is_seen(character)]
    said = "".join(characters[at] for at in places)
    for quotation in quotations:
        wanted = "".join(filter(_is_seen, quotation))
        begin = said.find(wanted) if wanted else -1
        if begin >= 0:
            first, last = places[begin], places[begin + len(wanted) - 1]
            for line in range(text.count_rects(first, last - first + 1)):
                yield text.get_rect(line)


def _is_seen(character: str) -> bool:
    return character.isprintable() and character not in " -|*#`\\"


def _mark(pixels: "NDArray[np.uint8]", across: list[int], down: list[int]) -> None:
    """Lay the marker over a box, widened by a pixel or two as a hand would."""
    part = pixels[max(0, down[0] - 2) : down[1] + 2, max(0, across[0] - 1) : across[1] + 1]
    part[:] = part * [share / 255 for share in _MARKER]


def _png(pixels: "NDArray[np.uint8]") -> bytes:
    """Write rows of red, green and blue as PNG."""
    import numpy as np

    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # Each row begins with its filter: none.
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
