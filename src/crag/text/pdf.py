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
from functools import cache
from importlib.util import find_spec
from typing import Any

from crag.errors import ContentError
from crag.text.blocks import Block, escaped
from crag.text.pdf_layout import LARGE, blocks_of_lines, going_on
from crag.text.pdf_page import SeenText, Segment, joined, seen_text

_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_ENCRYPTED = "an encrypted PDF: save a copy without password"
_DAMAGED = "a damaged PDF"
_NUMBER = re.compile(r"(?<!\S)\d{1,4}(?!\S)")
_LEADERS = re.compile(r"(?:[.·…_]\s?){4,}\s*[\divxlc]{1,6}$", re.IGNORECASE)
"""How a line of a table of contents ends."""
_FEWEST_HEADS, _MOST_HEADS = 3, 2
"""Pages that a running head stands on at least, and lines of one at the top or bottom of a page."""
_LONGEST_SIDE = 1800
"""Pixels to which a page is drawn, which is what bounds time and memory: A4 at 154 dots an inch."""
_LONGEST_SEARCHED = 1024
"""Pixels of the copy in which lines are looked for, which takes the most memory."""
_reading = threading.Lock()
"""PDFium is not thread-safe."""
_logger = logging.getLogger(__name__)


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
            pages = [_seen_on(document, at) for at in range(len(document))]
    except PdfiumError as error:
        encrypted = error.err_code == FPDF_ERR_PASSWORD
        raise ContentError(_ENCRYPTED if encrypted else _DAMAGED) from error
    return title, going_on(_blocks(pages))


def _seen_on(document: Any, number: int) -> SeenText | str:
    """Return what stands on a page, also in its forms and notes, or is recognised there."""
    from pypdfium2.raw import FLAT_NORMALDISPLAY, FLATTEN_SUCCESS, FPDFPage_Flatten

    page = document[number]
    if FPDFPage_Flatten(page, FLAT_NORMALDISPLAY) == FLATTEN_SUCCESS:
        page.close()
        page = document[number]
    seen: SeenText | str = seen_text(page) or ""
    if not seen and has_ocr() and next(page.get_objects(max_depth=1), None) is not None:
        seen = _recognised(page.render(scale=_LONGEST_SIDE / max(page.get_size())).to_numpy())
    page.close()
    return seen


def has_ocr() -> bool:
    """Return whether the extra is installed; nothing of it is loaded."""
    return find_spec("rapidocr") is not None


def _recognised(picture: Any) -> str:
    """Return the lines of a picture, with an empty one above each paragraph.

    By RapidOCR, whose models come in its package. They read English, Chinese, Japanese and 46 other
    languages in Latin letters (PP-OCRv6, arXiv:2606.13108). `picture` is an array of rows, columns
    and blue, green and red. Lines are read over the whole width, so columns are mixed up.
    """
    result = _engine()(picture)
    return str(result.to_markdown()) if result.txts else ""


@cache
def _engine() -> Any:
    import cv2
    import rapidocr

    cv2.setNumThreads(1)
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _LONGEST_SEARCHED,
            "Rec.rec_batch_num": 1,  # Batches garbled some of the longest lines, and took longer.
        }
    )


def _blocks(pages: Sequence[SeenText | str]) -> Iterator[Block]:
    """Yield the blocks of pages without running heads and the lines of tables of contents."""
    lines = [[] if isinstance(seen, str) else list(map(joined, seen.lines)) for seen in pages]
    letters = Counter[float]()
    for one in (line for page in lines for line in page):
        letters[round(2 * one.size) / 2] += len(one.text)
    usual = max(letters, key=lambda size: letters[size], default=0.0)
    bold = sum(len(one.text) for page in lines for one in page if one.is_bold)
    sizes = [*sorted((size for size in letters if size > LARGE * usual), reverse=True), usual]
    numbered = enumerate(zip(pages, lines, without_heads(lines), strict=True), 1)
    for number, (seen, texts, kept) in numbered:
        if isinstance(seen, str):
            for paragraph in re.split(r"\n\s*\n", seen):
                words = escaped(" ".join(paragraph.split()))
                yield from [Block("text", number, number, words)] if words else ()
        else:
            said = [seen.lines[at] for at in kept if not _LEADERS.search(texts[at].text)]
            if 2 * bold > letters.total():  # Then it does not set anything off.
                said = [[one._replace(is_bold=False) for one in line] for line in said]
            yield from blocks_of_lines(said, seen, number, sizes)


def without_heads(pages: Sequence[Sequence[Segment]]) -> Iterator[list[int]]:
    """Yield which lines of a page remain: not those that most begin or end with at one height.

    With the page's number in them three pages are enough, since books name book and chapter by
    turns. Of two pages the first one keeps what both begin or end with, but for their numbers. A
    page of such lines alone has all.
    """

    def forms(line: Segment, page: int) -> Iterator[str]:
        height = f"{round(line.base / 3)}:"
        yield height + line.text
        for number in _NUMBER.finditer(line.text):  # It grows by one from page to page.
            before, after = line.text[: number.start()], line.text[number.end() :]
            yield f"{height}{before}#{int(number[0]) - page}{after}"

    ends = [{*range(len(page))[:_MOST_HEADS], *range(len(page))[-_MOST_HEADS:]} for page in pages]
    counts = Counter(
        form for at, page in enumerate(pages) for n in ends[at] for form in forms(page[n], at)
    )
    fewest = min(_FEWEST_HEADS, max(2, len(pages)))
    most = max(fewest, len(pages) // 2 + 1)
    running = {form for form in counts if counts[form] >= (fewest if "#" in form else most)}
    for at, page in enumerate(pages):
        lines, is_kept = range(len(page)), not at and len(pages) < _FEWEST_HEADS
        gone = {form for form in running if "#" in form} if is_kept else running
        heads = {n for n in ends[at] if not gone.isdisjoint(forms(page[n], at))}
        yield [n for n in lines if n not in heads] or list(lines)


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
