"""Transcribe the body of a page into a title and paragraphs."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import chain

from crag.errors import ContentError, PageError
from crag.text.encodings import decoded
from crag.text.html import read_html
from crag.text.paragraphs import FEWEST_CHARACTERS, paragraphs_of
from crag.text.pdf import read_web_pdf
from crag.text.sentences import sentences_of

READABLE = (
    "text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf",
)  # fmt: skip
"""The content types that are read."""
MOST_PARAGRAPHS = 400
LONGEST_PARAGRAPH = 1_600
"""Characters, about 250 English words; a longer one is split at sentence ends."""
LONGEST_TITLE = 300
MOST_PDF_PAGES = 100
_MOST_CHARACTERS = 1_000_000
_HTML = re.compile(rb"<(!doctype html|html|head|title|body|!--|meta|p|div|h1)\b", re.IGNORECASE)


def transcribe(body: bytes, content_type: str, url: str) -> tuple[str, tuple[str, ...]]:
    """Return the title and the distinct paragraphs, each on one line, of a page.

    It is HTML, PDF or text, as `content_type`, the HTTP header, or its beginning says. The text is
    not neutralised: do that before you show it or pass it to a model (`crag.text.untrusted`).

    Raises:
        PageError: the body is damaged, or it has no text.
    """
    try:
        title, texts = _title_and_texts(body, content_type)
    except ContentError as error:
        raise PageError(url, "unreadable", error.problem) from error
    title = " ".join(title.split())[:LONGEST_TITLE]
    kept = {title.casefold(): title}
    for piece in chain.from_iterable(map(_cut, texts)):
        if len(piece) >= FEWEST_CHARACTERS:
            kept.setdefault(piece.casefold(), piece)
        if len(kept) > MOST_PARAGRAPHS:
            break
    if len(kept) == 1:
        raise PageError(url, "empty", "no text in it")
    return title, tuple(kept.values())[1:]


def media_type(content_type: str) -> str:
    """Return the type that the header names, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _title_and_texts(body: bytes, content_type: str) -> tuple[str, Iterable[str]]:
    name, start = media_type(content_type), body[:1024].lstrip()
    if name == "application/pdf" or start.startswith(b"%PDF-"):
        title, pages = read_web_pdf(
            body, most_pages=MOST_PDF_PAGES, most_characters=_MOST_CHARACTERS
        )
        return title, chain.from_iterable(map(paragraphs_of, pages))
    text = decoded(body, content_type)
    if name in ("text/html", "application/xhtml+xml") or (not name and _HTML.search(start)):
        return read_html(text)
    return "", paragraphs_of(text)


def _cut(paragraph: str) -> Iterator[str]:
    """Split a long paragraph into whole sentences, and a long sentence at words."""
    if len(paragraph) <= LONGEST_PARAGRAPH:
        yield paragraph
        return
    piece = ""
    for sentence in sentences_of(paragraph[: MOST_PARAGRAPHS * LONGEST_PARAGRAPH]):
        for part in textwrap.wrap(sentence, LONGEST_PARAGRAPH, break_on_hyphens=False):
            if piece and len(piece) + 1 + len(part) > LONGEST_PARAGRAPH:
                yield piece
                piece = ""
            piece = f"{piece} {part}" if piece else part
    yield piece
