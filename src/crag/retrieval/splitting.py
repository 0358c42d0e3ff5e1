"""Split documents into chunks that fit the encoder, each with its position."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.retrieval.documents import SourceText, digest
from crag.retrieval.markdown import Heading, headings, section_paths

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter

CHUNK_SIZE = 1000
"""Most characters in a chunk; four are about one token of English."""

_TOKEN = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\sA-Za-z\d]")
_CHARACTERS_PER_TOKEN = 4
_HEADING = r"\n(?=#{1,6} )"
_SEPARATORS = ["\n\n", "\n", "(?<=[.!?…]) ", "(?<=[。！？])", " ", ""]

Span = tuple[int, int]
"""Start and end of a chunk, as offsets into the document's text."""


def split(document: SourceText, root: str) -> list[Document]:
    """Split a document into chunks that do not overlap and together contain all of its text.

    Markdown is split at headings first, and a heading stays with the text below it. Each chunk
    has an id and the metadata that a citation needs; `root` is the path it was indexed under.
    """
    found = headings(document.text) if document.markdown else []
    spans = _spans(document, found)
    place = _Places(document, found)
    common = {
        "source": document.source,
        "title": document.title,
        "content_hash": document.content_hash,
        "chunks": len(spans),
        "root": root,
    }
    return [
        Document(
            id=chunk_id(document.source, document.content_hash, number),
            page_content=document.text[start:end],
            metadata={**common, **place.of(start), "chunk": number, "start": start},
        )
        for number, (start, end) in enumerate(spans)
    ]


def chunk_id(source: str, content_hash: str, number: int) -> str:
    """Name chunk `number` of one version of a document."""
    return digest(source, content_hash, str(number))


def text_to_embed(chunk: Document) -> str:
    """Return the text to embed: the chunk with its title before it."""
    title = chunk.metadata["title"]
    return f"{title} // {chunk.page_content}" if title else chunk.page_content


class _Places:
    """Return the position of an offset in its document."""

    def __init__(self, document: SourceText, found: Sequence[Heading]) -> None:
        self._document = document
        self._starts = _unit_starts(document)
        self._headings = [heading.start for heading in found]
        self._sections = section_paths(found, document.title)

    def of(self, offset: int) -> dict[str, Any]:
        place = {"position": self._position(offset)}
        if self._document.url:
            place["url"] = self._document.url
        heading = bisect_right(self._headings, offset) - 1
        if heading >= 0 and self._sections[heading]:
            place["section"] = self._sections[heading]
        return place

    def _position(self, offset: int) -> str:
        number = self._document.number or bisect_right(self._starts, offset)
        return f"{self._document.unit} {number}"


def _unit_starts(document: SourceText) -> Sequence[int]:
    match document.unit:
        case "line":
            breaks = re.finditer("\n", document.text)
        case "paragraph":
            breaks = re.finditer("\n\n", document.text)
        case "page":
            return document.pages
        case "row" | "record":
            return ()
    return list(chain([0], (match.end() for match in breaks)))


def _spans(document: SourceText, found: Sequence[Heading]) -> list[Span]:
    chunks = _splitter(document.markdown).create_documents([document.text])
    starts = (chunk.metadata["start_index"] for chunk in chunks)
    spans = [
        (start, start + len(chunk.page_content))
        for start, chunk in zip(starts, chunks, strict=True)
    ]
    return list(_with_headings(document.text, spans, {heading.start for heading in found}))


def _with_headings(text: str, spans: Sequence[Span], found: set[int]) -> Iterator[Span]:
    """Move headings at the end of a chunk to the one after it."""
    begin = spans[0][0] if spans else 0
    for (_, end), (next_start, _) in pairwise(spans):
        tail = _headings_at_end(text, begin, end, found)
        if tail > begin:
            yield begin, begin + len(text[begin:tail].rstrip())
        begin = tail if tail < end else next_start
    if spans:
        yield begin, spans[-1][1]


def _headings_at_end(text: str, start: int, end: int, found: set[int]) -> int:
    """Return the start of the headings at the end of a chunk, or its end."""
    tail = end
    for line in reversed(list(re.finditer(r"\S[^\n]*", text[start:end]))):
        if start + line.start() not in found:
            break
        tail = start + line.start()
    return tail


@cache
def _splitter(markdown: bool) -> "TextSplitter":
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        separators=[_HEADING, *_SEPARATORS] if markdown else _SEPARATORS,
        is_separator_regex=True,
        chunk_size=CHUNK_SIZE,
        chunk_overlap=0,
        length_function=_length,
        add_start_index=True,
    )


def _length(text: str) -> int:
    """Measure in characters, weighted for scripts and notations that take more tokens."""
    tokens = sum(1 for _ in _TOKEN.finditer(text))
    return max(len(text), _CHARACTERS_PER_TOKEN * tokens)
