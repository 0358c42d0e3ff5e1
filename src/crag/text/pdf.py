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
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from crag.errors import ContentError
from crag.text.blocks import Block, escaped
from crag.text.ocr import LONGEST_SIDE, has_ocr, recognised
from crag.text.pdf_layout import LARGE, blocks_of_lines, going_on
from crag.text.pdf_page import SeenText, Segment, joined, seen_texts

_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_ENCRYPTED = "an encrypted PDF: save a copy without password"
_DAMAGED = "a damaged PDF"
_NUMBER = re.compile(r"(?<!\S)\d{1,4}(?!\S)")
_LEADERS = re.compile(r"(?:[.·…_]\s?){4,}\s*[\divxlc]{1,6}$", re.IGNORECASE)
"""How a line of a table of contents ends."""
_FEWEST_HEADS, _MOST_HEADS = 3, 2
"""Pages that a running head stands on at least, and lines of one at the top or bottom of a page."""
_reading = threading.Lock()
"""PDFium is not thread-safe."""
_logger = logging.getLogger(__name__)


_Page = tuple[int, SeenText | str]
"""Its number, and what stands there in one direction of writing, or what was recognised there."""


def read_pdf(body: bytes) -> tuple[str, list[Block]]:
    """Return the title of a file, if it names one, and what is seen of it in reading order.

    The places of the blocks are pages. Scanned pages are recognised where the extra `ocr` is there.

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
    return title, list(going_on(_blocks(pages)))


def _parts_of(page: Any, number: int) -> Iterator[_Page]:
    """Yield what stands on a page in each direction of writing."""
    texts = seen_texts(page)
    yield from ((number, seen) for seen in texts)
    if not texts and has_ocr() and next(page.get_objects(max_depth=1), None) is not None:
        picture = page.render(scale=LONGEST_SIDE / max(page.get_size())).to_numpy()
        yield number, recognised(picture)
    page.close()


def _blocks(pages: Sequence[_Page]) -> Iterator[Block]:
    """Yield the blocks of pages without running heads and the lines of tables of contents."""
    lines = [[] if isinstance(seen, str) else list(map(joined, seen.lines)) for _, seen in pages]
    letters = Counter[float]()
    for one in (line for page in lines for line in page):
        letters[round(2 * one.size) / 2] += len(one.text)
    usual = max(letters, key=lambda size: letters[size], default=0.0)
    sizes = [*sorted((size for size in letters if size > LARGE * usual), reverse=True), usual]
    for (number, seen), (first, last) in zip(pages, running_heads(lines), strict=True):
        if isinstance(seen, str):
            for paragraph in re.split(r"\n\s*\n", seen):
                words = escaped(" ".join(paragraph.split()))
                yield from [Block("text", number, number, words)] if words else ()
        else:
            within = seen.lines[first : len(seen.lines) - last]
            said = [line for line in within if not _LEADERS.search(joined(line).text)]
            yield from blocks_of_lines(said, seen, number, sizes)


def running_heads(pages: Sequence[Sequence[Segment]]) -> Iterator[tuple[int, int]]:
    """Yield how many lines most pages begin and end with at one height, the page's number apart.

    Where most pages have that number, two are enough, since books name book and chapter by turns. A
    page of such lines alone has none.
    """
    edges = [[*page[:_MOST_HEADS], *page[_MOST_HEADS:][-_MOST_HEADS:]] for page in pages]
    offsets = Counter(
        int(number) - at
        for at, page in enumerate(edges)
        for line in page
        for number in _NUMBER.findall(line.text)
    )
    offset = max(offsets, key=lambda one: offsets[one], default=0)

    def head(line: Segment, at: int) -> str:
        number = rf"(?<!\S){at + offset}(?!\S)"
        return f"{round(line.base / 3)}:{re.sub(number, '#', line.text)}"

    most = max(_FEWEST_HEADS, len(pages) // 2 + 1)
    heads = [[head(line, at) for line in page] for at, page in enumerate(edges)]
    counts = Counter(one for page in heads for one in page)
    are_numbered = sum(any("#" in one for one in page) for page in heads) >= most
    running = {one for one in counts if counts[one] >= (2 if are_numbered and "#" in one else most)}
    for at, page in enumerate(pages):
        first, last = (
            len(list(takewhile(lambda line, at=at: head(line, at) in running, ends)))  # type: ignore[misc]
            for ends in (page[:_MOST_HEADS], page[::-1][:_MOST_HEADS])
        )
        yield (first, last) if first + last < len(page) else (0, 0)


def read_web_pdf(body: bytes, *, most_pages: int, most_characters: int) -> tuple[str, list[str]]:
    """Return the title of a PDF from the web, and its pages up to one more than the characters.

    Words cut at line ends are whole again.

    Raises:
        ContentError: it is damaged or encrypted.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # Else each flaw of a file is a warning.
    texts = list[str]()
    try:
        reader = PdfReader(io.BytesIO(body))
        title = _named(str((reader.metadata and reader.metadata.title) or ""))
        for page in reader.pages[:most_pages]:
            texts.append(_HYPHENATED.sub("", page.extract_text()).strip())
            if sum(map(len, texts)) > most_characters:
                break
    except (FileNotDecryptedError, DependencyError) as error:
        raise ContentError(_ENCRYPTED) from error
    except (
        PyPdfError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
        NotImplementedError, OSError, RecursionError, TypeError, ValueError,
    ) as error:  # What pypdf's parser raises on damaged files.  # fmt: skip
        _logger.debug("cannot parse a PDF", exc_info=True)
        raise ContentError(_DAMAGED) from error
    return title, texts


def _named(title: str) -> str:
    title = " ".join(title.split())
    return "" if title.lower() in _NO_TITLES else title
