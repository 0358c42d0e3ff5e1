"""Title and text of a PDF: of a file, and of the web.

Files are read by PDFium, which knows where each word stands and whether it is seen; a page without
text is drawn and recognised, where the extra `ocr` is installed. It is native code that browsers
run in a sandbox, so a PDF from the web is read by pypdf, which is Python.
"""

import io
import logging
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from crag.errors import ContentError
from crag.text.blocks import Block
from crag.text.ocr import LONGEST_SIDE, has_ocr, recognised
from crag.text.pdf_layout import (
    Line,
    blocks_of_lines,
    blocks_of_text,
    going_on,
    is_leader,
    joined,
    lines_of_page,
    sizes_of,
)
from crag.text.pdf_page import SeenText, Segment, seen_texts

_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_ENCRYPTED = "an encrypted PDF: save a copy without password"
_DAMAGED = "a damaged PDF"
_NUMBER = re.compile(r"(?<!\S)\d{1,4}(?!\S)")
_NUMBERED = re.compile(r":(?:#-?\d+(?: |$)|.* #-?\d+$)")
"""A line that begins or ends with the number of its page, as `_keys` writes it."""
_FEWEST_HEADS, _MOST_HEADS, _MOST_BEFORE = 3, 2, 20
"""Pages that a running head stands on at least, lines of one at the top or bottom of a page, and
pages before the first one that has a number."""
_reading = threading.Lock()
"""PDFium is not thread-safe."""
_logger = logging.getLogger(__name__)


class PdfText(NamedTuple):
    """The text layer of a PDF of the web."""

    title: str
    """On one line; empty where the file names none."""
    pages: list[str]
    """The text of each page; empty where it has none. Words cut at line ends are whole again."""


class PdfBlocks(NamedTuple):
    """What is seen of a PDF."""

    title: str
    """On one line; empty where the file names none."""
    blocks: list[Block]
    """In reading order; their places are pages."""


class _Page(NamedTuple):
    """The text of a page in one direction, or recognised from a picture."""

    number: int
    seen: SeenText | None = None
    lines: Sequence[Line] = ()
    recognised: str = ""


def read_pdf(body: bytes) -> PdfBlocks:
    """Read the text of a file, and recognise that of scanned pages where the extra `ocr` is there.

    Raises:
        ContentError: it is damaged or encrypted.
    """
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD

    try:
        with _reading, PdfDocument(body) as document:
            title = _named(document.get_metadata_value("Title"))
            pages = [
                part for at in range(len(document)) for part in _parts_of(document[at], at + 1)
            ]
    except PdfiumError as error:
        encrypted = error.err_code == FPDF_ERR_PASSWORD
        raise ContentError(_ENCRYPTED if encrypted else _DAMAGED) from error
    return PdfBlocks(title, list(going_on(_blocks(_without_running_heads(pages)))))


def _parts_of(page: Any, number: int) -> Iterator[_Page]:
    """Yield what stands on a page in each direction of writing."""
    parts = [_Page(number, seen, lines_of_page(seen.segments)) for seen in seen_texts(page)]
    is_empty = not parts and next(page.get_objects(max_depth=1), None) is not None
    if is_empty and has_ocr():
        picture = page.render(scale=LONGEST_SIDE / max(page.get_size())).to_numpy()
        parts = [_Page(number, recognised=recognised(picture))]
    page.close()
    yield from parts


def _without_running_heads(pages: Sequence[_Page]) -> list[_Page]:
    """Leave out running heads, and the lines of tables of contents."""
    ends = running_heads([list(map(joined, page.lines)) for page in pages])
    within = (
        page.lines[first : len(page.lines) - last]
        for page, (first, last) in zip(pages, ends, strict=True)
    )
    return [
        page._replace(lines=[line for line in lines if not is_leader(line)])
        for page, lines in zip(pages, within, strict=True)
    ]


def _blocks(pages: Sequence[_Page]) -> Iterator[Block]:
    sizes = sizes_of([one for page in pages for line in page.lines for one in line])
    for page in pages:
        if page.seen is None:
            yield from blocks_of_text(page.recognised, page.number)
        else:
            yield from blocks_of_lines(page.lines, page.seen, page.number, sizes)


def running_heads(pages: Sequence[Sequence[Segment]]) -> Iterator[tuple[int, int]]:
    """Yield how many lines most pages begin and end with at one height, the page's number apart.

    Where most pages have their number beside a title, two pages with that are enough, since books
    name book and chapter by turns. A page of such lines alone has none.
    """
    keys = [[_keys(line, at) for line in page] or [set()] for at, page in enumerate(pages)]
    edges = Counter(
        key
        for page in keys
        for key in frozenset[str]().union(*page[:_MOST_HEADS], *page[-_MOST_HEADS:])
    )
    fewest = max(_FEWEST_HEADS, len(pages) // 2 + 1)
    numbered = sum(any(map(_NUMBERED.search, page[0] | page[-1])) for page in keys)
    running = {
        key
        for key, count in edges.items()
        if count >= (2 if numbered >= fewest and _NUMBERED.search(key) else fewest)
    }
    for page, (first, last) in zip(keys, _edges(keys, running), strict=True):
        yield (first, last) if first + last < len(page) else (0, 0)


def _keys(line: Segment, page: int) -> set[str]:
    """Return a line with its height, and for each of its numbers how far that is from the sheet's.

    A running head stands at one height.
    """
    text, height = line.text, round(line.base / 3)
    keys = {f"{height}:{text}"}
    for number in _NUMBER.finditer(text):
        distance = int(number[0]) - page
        if abs(distance) <= _MOST_BEFORE:
            keys.add(f"{height}:{text[: number.start()]}#{distance}{text[number.end() :]}")
    return keys


def _edges(
    pages: Iterable[Sequence[set[str]]], running: AbstractSet[str]
) -> Iterator[tuple[int, int]]:
    """Yield how many running heads stand at the top and at the bottom of each page."""
    for keys in pages:
        top, bottom = keys[:_MOST_HEADS], keys[::-1][:_MOST_HEADS]
        first, last = (
            next((at for at, key in enumerate(ones) if running.isdisjoint(key)), len(ones))
            for ones in (top, bottom)
        )
        yield first, last


def read_web_pdf(body: bytes, *, most_pages: int, most_characters: int) -> PdfText:
    """Read the text of a PDF from the web, up to one page more than the most characters.

    Raises:
        ContentError: it is damaged or encrypted.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    parser_log = logging.getLogger("pypdf")
    if parser_log.level == logging.NOTSET:
        parser_log.setLevel(logging.CRITICAL)  # It reports each flaw of a file as a warning.
    try:
        reader = PdfReader(io.BytesIO(body))
        title = str((reader.metadata and reader.metadata.title) or "")
        pages = (page.extract_text() for page in reader.pages[:most_pages])
        texts = [_HYPHENATED.sub("", page).strip() for page in _until(most_characters, pages)]
        return PdfText(_named(title), texts)
    except (FileNotDecryptedError, DependencyError) as error:
        raise ContentError(_ENCRYPTED) from error
    except (
        PyPdfError,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        MemoryError,
        NotImplementedError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:  # What pypdf's parser raises on damaged files.
        _logger.debug("cannot parse a PDF", exc_info=True)
        raise ContentError(_DAMAGED) from error


def _until(most: int, pages: Iterable[str]) -> Iterator[str]:
    length = 0
    for page in pages:
        yield page
        length += len(page)
        if length > most:
            return


def _named(title: str) -> str:
    title = " ".join(title.split())
    return "" if title.lower() in _NO_TITLES else title
