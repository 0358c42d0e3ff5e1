"""Chunks of documents: whole blocks of one section, each line with its place in the file.

Short sections share a chunk, each under its own heading. Of a block that does not fit, a list is
cut between items, a table between rows, code between stanzas and prose between sentences. What is
cut repeats what it needs to be understood, its lead-in, the head of its table, the first line of
its item, as context; nothing else stands in two chunks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile, zip_longest
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.documents.sources import FIELDS, SourceText, digest
from crag.text.blocks import Block, Item, Line, lines_of, lines_of_item
from crag.text.places import lines_written
from crag.text.sentences import split_sentences
from crag.text.units import leads_in
from crag.text.words import without_markup

if TYPE_CHECKING:
    from langchain_core.documents import Document

CHUNK_SIZE = 1000
"""Most characters in a chunk; four are about one token of English."""
SMALL = 500
"""Characters up to which a section is joined with the next one."""
LONGEST_CONTEXT = 300
"""Most characters of a lead-in or a head that is repeated."""
_LEAST_ROOM = 250
"""Characters for what follows a repeated head, however long that is."""
_ALPHABETIC = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u06ff"
"""Letters of scripts that encoders read in pieces of several letters: Latin to Arabic."""
_TOKEN = re.compile(rf"[{_ALPHABETIC}]{{1,7}}|\d{{1,3}}|[^\s{_ALPHABETIC}\d]")
_CHARACTERS_PER_TOKEN = 4
_WORDS = re.compile(r"\s*\S{1,200}\s*|\s+")
_SEPARATOR = " > "
_HEADINGS_WITHIN = 200
"""Characters of a chunk in which its own headings stand."""

_Joint = Literal["apart", "below", "beside"]


class Chunk(NamedTuple):
    """Some blocks of a document."""

    path: tuple[str, ...]
    """The headings that all of it stands under, without the document's title."""
    lines: list[Line]
    context_lines: int = 0
    """How many of the first lines are repeated from another chunk."""


class _Piece(NamedTuple):
    """What is not cut any further."""

    kind: str
    lines: list[Line]
    context: Sequence[Line] = ()
    """What is repeated before it where it begins a chunk."""
    keeps: bool = False
    """Whether it stays with the next one."""
    joint: _Joint = "apart"
    """How it follows the piece before it in a chunk: after an empty line, on the next line, or on
    the same line."""

    @property
    def size(self) -> int:
        return _size(self.lines)


class _Section(NamedTuple):
    path: tuple[str, ...]
    pieces: list[_Piece]

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


def split(document: SourceText, root: str) -> "list[Document]":
    """Return the chunks of a document as LangChain has them, with what citations need.

    `root` is the path that the document was indexed under.
    """
    from langchain_core.documents import Document

    chunks = chunks_of(document)
    common = {
        "source": document.source,
        "title": document.title,
        "content_hash": document.content_hash,
        "root": root,
        **({"url": document.url} if document.url else {}),
    }
    return [
        Document(
            id=digest(document.source, document.content_hash, str(number)),
            page_content="\n".join(line.text for line in chunk.lines),
            metadata={**common, **_place(chunk, document), "chunk": number},
        )
        for number, chunk in enumerate(chunks)
    ]


def text_to_embed(chunk: "Document") -> str:
    """Return the text to embed: the chunk without markup, its title and headings before it.

    Headings that the chunk begins with are not repeated.
    """
    text = without_markup(chunk.page_content)
    above = map(without_markup, str(chunk.metadata.get("section") or "").split(_SEPARATOR))
    opening = text[:_HEADINGS_WITHIN]
    section = _SEPARATOR.join(name for name in above if name and name not in opening)
    return " // ".join(filter(None, (str(chunk.metadata.get("title") or ""), section, text)))


def chunks_of(document: SourceText) -> list[Chunk]:
    """Cut a document into chunks that together hold all of it, in order."""
    own = [block for block in document.blocks if block.info == FIELDS]
    chunks, waiting = [Chunk((), list(lines_of(block))) for block in own], list[_Section]()
    for section in _sections(document):
        size = sum(one.size for one in waiting)
        fits = size + section.size <= CHUNK_SIZE and min(size, section.size) <= SMALL
        if waiting and not fits:
            chunks += _filled(waiting)
            waiting = []
        waiting.append(section)
    return [*chunks, *_filled(waiting)]


def _place(chunk: Chunk, document: SourceText) -> dict[str, Any]:
    first = document.number or chunk.lines[chunk.context_lines].first
    place: dict[str, Any] = {"position": f"{document.unit} {first}"}
    if not document.number:
        place["lines"] = lines_written((line.first, line.last) for line in chunk.lines)
    if chunk.context_lines:
        place["repeats"] = chunk.context_lines
    if chunk.path:
        place["section"] = _SEPARATOR.join(chunk.path)
    return place


def _sections(document: SourceText) -> list[_Section]:
    """Return the blocks under each heading; a heading without any stays with the next one."""
    sections = [_Section((), [])]
    above: list[tuple[int, str]] = []
    blocks = [block for block in document.blocks if block.info != FIELDS]
    for block, follower in zip_longest(blocks, blocks[1:]):
        if block.kind == "heading":
            above = [one for one in above if one[0] < block.level] + [(block.level, block.text)]
            path = tuple(name for _, name in above)
            path = path[1:] if path[:1] == (document.title,) else path
            is_bare = all(piece.kind == "heading" for piece in sections[-1].pieces)
            sections.append(_Section(path, sections.pop().pieces if is_bare else []))
        pieces = sections[-1].pieces
        pieces.extend(_pieces(block, follower, pieces[-1] if pieces else None))
    *others, last = sections
    if others and all(piece.kind == "heading" for piece in last.pieces):
        others[-1].pieces.extend(last.pieces)  # A heading that nothing follows is no passage.
        return others
    return sections


def _pieces(block: Block, follower: Block | None, before: _Piece | None) -> Iterator[_Piece]:
    """Yield a block whole, or its parts if it does not fit."""
    whole = _Piece(block.kind, list(lines_of(block)))
    lead = before.lines[-1:] if before and before.keeps and before.kind == "text" else []
    match block.kind:
        case "heading":
            yield whole._replace(keeps=True)
        case "text":
            announces = _announces(block.text, follower)
            if whole.size > (LONGEST_CONTEXT if announces else CHUNK_SIZE):
                *most, whole = _sentences(whole.lines)
                yield from most
            yield whole._replace(keeps=announces and whole.size <= CHUNK_SIZE // 2)
        case _ if whole.size + _size(lead) <= CHUNK_SIZE:
            announces = block.kind == "list" and _announces(whole.lines[-1].text, follower)
            yield whole._replace(keeps=announces)
        case "list":
            yield from _items(block.items, _with_blank(lead))
        case "table":
            yield from _rows(block, whole.lines[:2], _with_blank(lead))
        case "code":
            yield from _stanzas(whole.lines, _with_blank(lead))


def _announces(text: str, follower: Block | None) -> bool:
    """Return whether a text is not understood without what follows it, nor that without it."""
    if follower is None or follower.kind == "heading":
        return False
    end = text.rstrip("*_`)\"' ")[-1:] if follower.kind == "text" else text.rpartition(". ")[2]
    return leads_in(end)


def _sentences(lines: Sequence[Line]) -> Iterator[_Piece]:
    """Yield the sentences of a text; of one that does not fit, some words."""
    joint: _Joint = "apart"
    for line in lines:
        for sentence in split_sentences(line.text):
            for part in _by_words(sentence, CHUNK_SIZE):
                yield _Piece("text", [line._replace(text=part)], joint=joint)
                joint = "beside"
        joint = "below"


def _by_words(text: str, room: int) -> Iterator[str]:
    part = ""
    for word in [text] if _length(text) <= room else _WORDS.findall(text):
        if part and _length(part) + _length(word) > room:
            yield part
            part = ""
        part += word
    yield part


def _items(items: Sequence[Item], lead: Sequence[Line]) -> Iterator[_Piece]:
    """Yield the items of a list; of one that does not fit, its blocks below its first line."""
    for number, item in enumerate(items):
        joint: _Joint = "below" if number else "apart"
        lines = list(lines_of_item(item))
        if _size(lines) + _size(lead) <= CHUNK_SIZE:
            yield _Piece("list", lines, lead if number else (), joint=joint)
            continue
        first, *others = _parts_of_item(item)
        yield first._replace(context=lead if number else (), joint=joint)
        for part in others:
            yield part._replace(context=[*lead, *part.context])


def _parts_of_item(item: Item) -> Iterator[_Piece]:
    """Yield the blocks of an item, the later ones below its first line."""
    margin = " " * (len(item.mark) + 1)
    opening: _Piece | None = None
    for block, follower in zip_longest(item.blocks, item.blocks[1:]):
        for number, piece in enumerate(_pieces(block, follower, None)):
            if opening is None:
                start = piece.lines[0]
                lines = [start._replace(text=f"{item.mark} {start.text}"), *piece.lines[1:]]
                is_short = piece.kind == "text" and piece.size <= LONGEST_CONTEXT
                opening = _Piece("list", lines, keeps=is_short)
                yield opening
                continue
            if not opening.keeps:
                yield piece  # Without its mark, what goes on in an item is as any text.
                continue
            is_below = block.kind == "list"
            term = opening.lines if is_below else _with_blank(opening.lines)
            joint: _Joint = "below" if is_below else "apart"
            inner = [*map(_indented(margin), piece.context)]
            lines = [*map(_indented(margin), piece.lines)]
            repeated = [*term, *inner]
            yield _Piece("list", lines, repeated, piece.keeps, piece.joint if number else joint)


def _rows(block: Block, head: list[Line], lead: Sequence[Line]) -> Iterator[_Piece]:
    """Yield the rows of a table, the first one with the head; wide ones as lists of their cells."""
    context = [*lead, *head]
    room = CHUNK_SIZE - _size(context)
    for number, row in enumerate(block.rows[1:]):
        lines = list(lines_of(Block("table", row.first, row.last, rows=[block.rows[0], row])))
        if _size(lines[2:]) <= room:
            joint: _Joint = "below" if number else "apart"
            own = [] if number else head
            yield _Piece("table", [*own, *lines[2:]], context if number else (), joint=joint)
            continue
        named = zip_longest(block.rows[0].cells, row.cells, fillvalue="")
        cells = (f"**{name}:** {cell}" if name else cell for name, cell in named if cell)
        texts = [Block("text", row.first, row.last, cell) for cell in cells]
        yield from _items([Item("-", [text]) for text in texts], lead)


def _stanzas(lines: Sequence[Line], lead: Sequence[Line]) -> Iterator[_Piece]:
    """Yield parts of code that is too long, each between fences."""
    fence, *code, end = lines
    room = max(CHUNK_SIZE - _size(lead) - _size([fence, end]), _LEAST_ROOM)
    code = [
        line._replace(text=line.text[at : at + room])
        for line in code
        for at in range(0, max(len(line.text), 1), room)
    ]
    start = 0
    while start < len(code):
        ends = accumulate(_length(line.text) + 1 for line in code[start : start + room])
        until = start + max(sum(1 for _ in takewhile(room.__ge__, ends)), 1)
        if until < len(code):  # Best before an outermost line that an empty one precedes.
            gaps = [at for at in range(start + 1, until + 1) if not code[at - 1].text.strip()]
            outer = [at for at in gaps if code[at].text[:1].strip()]
            until = max(outer or gaps, default=until)
        part = code[start:until]
        fences = part[0]._replace(text=fence.text), part[-1]._replace(text=end.text)
        yield _Piece("code", [fences[0], *part, fences[1]], lead if start else ())
        start = until


def _filled(sections: Sequence[_Section]) -> Iterator[Chunk]:
    """Put the pieces of sections into chunks of about equal size."""
    pieces = [piece for section in sections for piece in section.pieces]
    if not pieces:
        return
    path = _common([section.path for section in sections])
    total = sum(piece.size for piece in pieces)
    wanted = total / ceil(total / CHUNK_SIZE)
    current: list[_Piece] = []
    size = 0
    for piece in pieces:
        own = piece.size
        is_full = size + own > CHUNK_SIZE or size + own / 2 > wanted
        if is_full and not all(one.keeps for one in current):
            kept: list[_Piece] = []
            while current[-1].keeps:
                kept.insert(0, current.pop())
            yield _chunk(path, current)
            current = kept
            size = sum(one.size for one in current) + _size((current or [piece])[0].context)
        current.append(piece)
        size += own
    yield _chunk(path, current)


def _chunk(path: tuple[str, ...], pieces: Sequence[_Piece]) -> Chunk:
    lines = list(pieces[0].context)
    repeated = len(lines)
    for number, piece in enumerate(pieces):
        first, *others = piece.lines
        if number and piece.joint == "beside":
            last = lines.pop()
            first = Line(last.text + first.text, last.first, first.last)
        elif number and piece.joint == "apart":
            lines.append(Line("", first.first, first.first))
        lines += [first, *others]
    lines = [
        one if one.text.endswith("  ") else one._replace(text=one.text.rstrip()) for one in lines
    ]
    return Chunk(path, lines, repeated)


def _with_blank(lines: Sequence[Line]) -> list[Line]:
    return [*lines, *(Line("", line.last, line.last) for line in lines[-1:])]


def _indented(margin: str) -> Callable[[Line], Line]:
    return lambda line: line._replace(text=margin + line.text if line.text else "")


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the headings that all paths begin with."""
    names = zip(*paths, strict=False)
    return tuple(one[0] for one in takewhile(lambda one: len(set(one)) == 1, names))


def _size(lines: Iterable[Line]) -> int:
    return sum(_length(line.text) + 1 for line in lines)


@lru_cache(maxsize=4096)
def _length(text: str) -> int:
    """Measure in characters, weighted for scripts and notations that take more tokens."""
    return max(len(text), _CHARACTERS_PER_TOKEN * len(_TOKEN.findall(text)))
