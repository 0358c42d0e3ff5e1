"""Title and text of a PDF."""

import io
import logging
import re
from typing import NamedTuple

from crag.errors import ContentError

_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_logger = logging.getLogger(__name__)


class PdfText(NamedTuple):
    """The text layer of a PDF."""

    title: str
    """On one line; empty where the file names none."""
    pages: list[str]
    """The text of each page; empty for a scanned one. Words cut at line ends are whole again."""


def read_pdf(
    body: bytes, *, most_pages: int | None = None, most_characters: int | None = None
) -> PdfText:
    """Read the text of a PDF: all of it, or its first pages up to a limit.

    Raises:
        ContentError: it is damaged or encrypted.
    """
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    parser_log = logging.getLogger("pypdf")
    if parser_log.level == logging.NOTSET:
        parser_log.setLevel(logging.CRITICAL)  # It reports each flaw of a file as a warning.
    try:
        return _read(body, most_pages, most_characters)
    except (FileNotDecryptedError, DependencyError) as error:
        raise ContentError("an encrypted PDF: save a copy without password") from error
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
        raise ContentError("a damaged PDF") from error


def _read(body: bytes, most_pages: int | None, most_characters: int | None) -> PdfText:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body))
    title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
    pages: list[str] = []
    for page in reader.pages[:most_pages]:
        pages.append(_HYPHENATED.sub("", page.extract_text()).strip())
        if most_characters is not None and sum(map(len, pages)) > most_characters:
            break
    return PdfText("" if title.lower() in _NO_TITLES else title, pages)
