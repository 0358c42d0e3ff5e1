"""Transcribe the body of a page into titled paragraphs."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from crag.errors import ContentError, PageError
from crag.text.encodings import decoded
from crag.text.html import read_html
from crag.text.paragraphs import FEWEST_CHARACTERS, paragraphs_of
from crag.text.pdf import read_web_pdf
from crag.text.sentences import sentences_of
from crag.web.bodies import READABLE, media_type

MOST_PARAGRAPHS = 400
"""Everything after them is dropped."""
LONGEST_PARAGRAPH = 1_600
"""Characters, about 250 English words; a longer one is split at sentence ends."""
LONGEST_TITLE = 300
MOST_PDF_PAGES = 100
"""Later pages of a PDF are not read."""
_MOST_CHARACTERS = 1_000_000
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$", re.MULTILINE)


class Transcript(NamedTuple):
    """The title and paragraphs of a page."""

    title: str
    """On one line; empty if the page has none."""
    paragraphs: tuple[str, ...]
    """In the order of the page, each on one line, without the title or duplicates."""


def transcribe(body: bytes, content_type: str, url: str) -> Transcript:
    """Return the title and the paragraphs of a page.

    `content_type` is the HTTP header; `url` is used in messages and titles. Reads HTML, PDF, plain
    text and Markdown. The text is not neutralised: do that before you show it or pass it to a model
    (`crag.text.untrusted`).

    Raises:
        PageError: the content type is not one of these, the body is damaged, or it has no text.
    """
    name = media_type(content_type)
    if name not in READABLE:
        raise PageError(url, "content_type", f"{name!r} is not text")
    try:
        title, texts = _title_and_texts(name, body, content_type, url)
    except ContentError as error:
        raise PageError(url, "unreadable", error.problem) from error
    title = " ".join(title.split())[:LONGEST_TITLE]
    paragraphs = _paragraphs(texts, title)
    if not paragraphs:
        raise PageError(url, "empty", "no text in it")
    return Transcript(title, paragraphs)


def _title_and_texts(
    name: str, body: bytes, content_type: str, url: str
) -> tuple[str, Iterable[str]]:
    if name == "application/pdf" or body.lstrip().startswith(b"%PDF-"):
        title, pages = read_web_pdf(
            body, most_pages=MOST_PDF_PAGES, most_characters=_MOST_CHARACTERS
        )
        return title, chain.from_iterable(map(paragraphs_of, pages))
    text = decoded(body, content_type)
    match name:
        case "text/html" | "application/xhtml+xml":
            return read_html(text, url)
        case "text/markdown":
            heading = next(iter(_HEADING.findall(text)), ("", ""))
            return heading[1].rstrip(" \t#"), paragraphs_of(_HEADING.sub("\n", text))
        case _:
            return "", paragraphs_of(text)


def _paragraphs(texts: Iterable[str], title: str) -> tuple[str, ...]:
    """Split long paragraphs; drop short ones, duplicates and the title."""
    seen = {title.casefold()}
    kept: list[str] = []
    for piece in (piece for paragraph in texts for piece in _cut(paragraph)):
        if len(piece) >= FEWEST_CHARACTERS and piece.casefold() not in seen:
            seen.add(piece.casefold())
            kept.append(piece)
        if len(kept) == MOST_PARAGRAPHS:
            break
    return tuple(kept)


def _cut(paragraph: str) -> Iterator[str]:
    """Split a paragraph into whole sentences, none longer than `LONGEST_PARAGRAPH`."""
    if len(paragraph) <= LONGEST_PARAGRAPH:
        yield paragraph
        return
    piece = ""
    for sentence in _sentences(paragraph[: MOST_PARAGRAPHS * LONGEST_PARAGRAPH]):
        if piece and len(piece) + 1 + len(sentence) > LONGEST_PARAGRAPH:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}" if piece else sentence
    yield piece


def _sentences(text: str) -> Iterator[str]:
    for sentence in sentences_of(text):
        rest = sentence
        while len(rest) > LONGEST_PARAGRAPH:
            end = rest.rfind(" ", 1, LONGEST_PARAGRAPH + 1)
            end = end if end > 0 else LONGEST_PARAGRAPH
            yield rest[:end].strip()
            rest = rest[end:].strip()
        yield rest
