"""Title and text of a PDF."""

import io
import logging
import re

from crag.errors import PageError
from crag.text.paragraphs import paragraphs_of

MOST_PAGES = 100
"""Later pages are not read."""
_MOST_CHARACTERS = 1_000_000
_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_NO_TITLES = frozenset({"untitled", "(anonymous)", "(unspecified)"})
_logger = logging.getLogger(__name__)


def read_pdf(body: bytes, url: str) -> tuple[str, list[str]]:
    """Return the title and the paragraphs of a PDF's text layer; none of a scanned one.

    Raises:
        PageError: it is damaged or encrypted.
    """
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    parser_log = logging.getLogger("pypdf")
    if parser_log.level == logging.NOTSET:
        parser_log.setLevel(logging.CRITICAL)  # It reports each flaw of a file as a warning.
    try:
        return _read(body)
    except (FileNotDecryptedError, DependencyError) as error:
        raise PageError(url, "unreadable", "an encrypted PDF") from error
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
        _logger.debug("cannot parse %s", url, exc_info=True)
        raise PageError(url, "unreadable", "a damaged PDF") from error


def _read(body: bytes) -> tuple[str, list[str]]:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body))
    title = " ".join(str((reader.metadata and reader.metadata.title) or "").split())
    paragraphs: list[str] = []
    for page in reader.pages[:MOST_PAGES]:
        paragraphs += paragraphs_of(_HYPHENATED.sub("", page.extract_text()))
        if sum(map(len, paragraphs)) > _MOST_CHARACTERS:
            break
    return "" if title.lower() in _NO_TITLES else title, paragraphs
