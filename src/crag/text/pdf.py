"""Title and text of a PDF: of a file, and of the web.

Files are read by PDFium, which keeps words apart and tables in rows where other readers fail, ten
times as fast (`papers/README.md`); a page without text is drawn and recognised, where
the extra `ocr` is installed. It is native code that browsers run in a sandbox, so
a PDF from the web is read by pypdf, which is Python.
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
from crag.text.ocr import LONGEST_SIDE, has_ocr, recognised

_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_HYPHEN_OF_PDFIUM = "\ufffe"
"""Stands for a hyphen and the end of its line."""
_BULLET_OF_LATEX = "\x88"
"""What PDFium reads where a font of LaTeX does not tell that this is a bullet."""
_ENCRYPTED = "an encrypted PDF: save a copy without password"
_DAMAGED = "a damaged PDF"
_NUMBER = re.compile(r"(?<!\S)\d{1,4}(?!\S)")
_BESIDE = re.compile(r"(?P<first>#-?\d+)(?: .*)?|.* (?P<last>#-?\d+)")
_FEWEST_HEADS, _MOST_HEADS, _MOST_BEFORE = 3, 2, 20
"""Pages that a running head stands on at least, lines of one at the top or bottom of a page, and
pages before the first one that has a number."""
_reading = threading.Lock()
"""PDFium is not thread-safe."""
_logger = logging.getLogger(__name__)


class PdfText(NamedTuple):
    """The text layer of a PDF."""

    title: str
    """On one line; empty where the file names none."""
    pages: list[str]
    """The text of each page; empty where it has none. Words cut at line ends are whole again."""


def read_pdf(body: bytes) -> PdfText:
    """Read the text of a file, and recognise that of scanned pages where the extra `ocr` is there.

    Raises:
        ContentError: it is damaged or encrypted.
    """
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD

    try:
        with _reading, PdfDocument(body) as document:
            title = document.get_metadata_value("Title")
            with_ocr = has_ocr()
            pages = [
                _page_of(document, number, with_ocr=with_ocr) for number in range(len(document))
            ]
    except PdfiumError as error:
        encrypted = error.err_code == FPDF_ERR_PASSWORD
        raise ContentError(_ENCRYPTED if encrypted else _DAMAGED) from error
    return _text(title, pages)


def without_running_heads(pages: Sequence[str]) -> list[str]:
    """Leave out the lines that most pages begin or end with, the number of the page apart.

    Where most pages have their number beside a title, as books do that name book and chapter by
    turns, such a line is left out if two pages have it.
    """
    keys = [[_keys(line, at) for line in page.split("\n")] for at, page in enumerate(pages)]
    edges = Counter(
        key
        for page in keys
        for key in frozenset[str]().union(*page[:_MOST_HEADS], *page[-_MOST_HEADS:])
    )
    fewest = max(_FEWEST_HEADS, len(pages) // 2 + 1)
    numbers = Counter(
        number
        for page in keys
        for number in {_number_beside(key) for key in page[0] | page[-1]}
        if number
    )
    running = {
        key
        for key, count in edges.items()
        if key and (count >= fewest or (count > 1 and numbers[_number_beside(key)] >= fewest))
    }
    return [
        _within_edges(page, *one) for page, one in zip(pages, _edges(keys, running), strict=True)
    ]


def _keys(line: str, page: int) -> set[str]:
    """Return a line, and for each of its numbers how far that is from the number of the sheet."""
    line = line.strip()
    keys = {line}
    for number in _NUMBER.finditer(line):
        distance = int(number[0]) - page
        if abs(distance) <= _MOST_BEFORE:
            keys.add(f"{line[: number.start()]}#{distance}{line[number.end() :]}")
    return keys


def _number_beside(key: str) -> str:
    """Return the number of the page that a line begins or ends with, as `_keys` writes it."""
    found = _BESIDE.fullmatch(key)
    return (found["first"] or found["last"]) if found else ""


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


def _within_edges(page: str, first: int, last: int) -> str:
    lines = page.split("\n")
    return "\n".join(lines[first : len(lines) - last]).strip() or page


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
        return _text(title, _until(most_characters, pages))
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


def _page_of(document: Any, number: int, *, with_ocr: bool) -> str:
    page = document[number]
    text = page.get_textpage()
    content = str(text.get_text_range())
    text.close()
    if with_ocr and not content.strip() and next(page.get_objects(max_depth=1), None) is not None:
        content = recognised(page.render(scale=LONGEST_SIDE / max(page.get_size())).to_numpy())
    page.close()
    content = content.replace("\r\n", "\n").replace(_HYPHEN_OF_PDFIUM, "-\n")
    return content.replace(_BULLET_OF_LATEX, "•")


def _until(most: int, pages: Iterable[str]) -> Iterator[str]:
    length = 0
    for page in pages:
        yield page
        length += len(page)
        if length > most:
            return


def _text(title: str, pages: Iterable[str]) -> PdfText:
    title = " ".join(title.split())
    texts = [_HYPHENATED.sub("", page).strip() for page in pages]
    return PdfText("" if title.lower() in _NO_TITLES else title, texts)
