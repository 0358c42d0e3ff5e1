"""Split documents into chunks that follow their structure, each with its exact position.

A chunk holds whole blocks of one section where they fit; small sections under one heading share a
chunk. Of a block that does not fit, a list is cut between items, a table between rows, code between
lines and prose between sentences. A part of a list or of code repeats the sentence that announces
it, a part of an item its term, a part of a table its header, and prose the sentence before it;
nothing else overlaps.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.documents.blocks import ITEM, Block, Kind, blocks_of, is_item, line_offsets, section_paths
from crag.documents.sources import SourceText, digest
from crag.text.markup import without_markup
from crag.text.places import lines_written, places_written
from crag.text.sentences import split_sentences
from crag.text.wholes import CODE_DIRECTIVES, asks, is_term, names_next, underlines_title

if TYPE_CHECKING:
    from langchain_core.documents import Document

CHUNK_SIZE = 1000
"""Most characters in a chunk; four are about one token of English."""
SMALL = 500
"""Characters up to which a section is joined with the next one under the same heading."""
OVERLAP = 200
"""Most characters of the sentence that is repeated where prose is cut."""
LONGEST_CONTEXT = 300
"""Most characters of a lead-in, a header or a caption that is repeated."""
LEAST_ROOM = 250
"""Characters for what follows a repeated header, however long its rules are: they are no text."""
LONGEST_QUESTION = 30
"""Words up to which a paragraph that ends as a question stays with the one that answers it."""

_ALPHABETIC = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u06ff"
"""Letters of scripts that encoders read in pieces of several letters: Latin to Arabic."""
_TOKEN = re.compile(rf"[{_ALPHABETIC}]{{1,7}}|\d{{1,3}}|[^\s{_ALPHABETIC}\d]")
_CHARACTERS_PER_TOKEN = 4
_LINE = re.compile(r".*\n|.+")
_ROW = re.compile(
    r"(?:[ \t]*\|.*\n){1,50}?[ \t]*\+[-=+]+[ \t]*(?:\n|\Z)"  # of a grid, down to the rule below it
    r"|[ \t]*\* - .*(?:\n(?!\s*\* - ).*)*(?:\n|\Z)"  # of a list-table
    r"|.*\n|.+"
)
_ITEM_AND_NEXT = re.compile(
    rf"^({ITEM.pattern}.*?)[ \t]*$(?=(?:\n[ \t]*\n([ \t]+\S))?)", re.MULTILINE
)
"""The first line of an item, and where the text of a paragraph below it begins."""
_DIRECTIVE = re.compile(r"\s*\.\. [\w:.+-]+::.*")
_STANZA = re.compile(r"(?:[ \t]*\S.*(?:\n|\Z))+(?:[ \t]*\n)*|(?:[ \t]*\n)+")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_CODE_OR_STANZA = re.compile(
    rf"(?P<fence>[ \t]*(?:`{{3,}}|~{{3,}})).*\n(?:.*\n)*?(?P=fence)[ \t]*(?:\n|\Z)(?:[ \t]*\n)*"
    rf"|(?P<margin>[ \t]*)\.\. (?:{'|'.join(sorted(CODE_DIRECTIVES))})::.*"
    r"(?:\n(?:(?P=margin)[ \t]+\S.*|[ \t]*(?=\n|\Z)))+\n?"
    rf"|{_STANZA.pattern}"
)
_RULE_OF_GRID = re.compile(r"\+[-=+]{3,}\+")
_RULES = re.compile(r"[-=+| ]{2,}")
"""What a head has besides words, however wide its table is."""
_LONGEST_PARAGRAPH = 20_000
"""Characters; a longer paragraph is a log or data, which is cut between lines."""
_DEEPEST = 4
"""Lists within each other that are cut between items: as of a module, its classes and methods."""
_CLOSING = "*_`\"')] \t"
_SEPARATOR = " > "
_HEADING_WITHIN = 200

Span = tuple[int, int]
"""Start and end, as offsets into the document's text."""


class _Piece(NamedTuple):
    """A span, and what is put between it and the one before it."""

    span: Span
    glue: Literal["\n", "\n\n"] = "\n\n"


class _Atom(NamedTuple):
    """What is not cut any further."""

    kind: Kind
    span: Span
    length: int
    heading: bool = False
    context: tuple[_Piece, ...] = ()
    """What is repeated before it where it begins a chunk."""
    glue: Literal["\n", "\n\n"] = "\n\n"
    """What is put between its context and it."""
    tail: Span | None = None
    """What is repeated after it where it ends a chunk."""
    announces: bool = False
    """Whether it stays with the atom after it."""


@dataclass
class _Section:
    """A heading and what stands below it, up to the next one."""

    path: tuple[str, ...]
    atoms: list[_Atom] = field(default_factory=list)

    @cached_property
    def length(self) -> int:
        return sum(atom.length for atom in self.atoms)


class _Chunk(NamedTuple):
    path: tuple[str, ...]
    pieces: list[_Piece]
    start: int
    """Where its own text begins, behind what it repeats."""
    kind: Kind


class ChunkText(NamedTuple):
    """A chunk of a document, before it is one of LangChain's."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    """What a citation needs, as strings and integers."""

    def document(self) -> "Document":
        """Return it as LangChain has it."""
        from langchain_core.documents import Document

        return Document(id=self.id, page_content=self.text, metadata=dict(self.metadata))


def split(document: SourceText, root: str) -> "list[Document]":
    """Split a document into chunks that together contain all of its text, as `chunk_texts`."""
    return [chunk.document() for chunk in chunk_texts(document, root)]


def chunk_texts(document: SourceText, root: str) -> Iterator[ChunkText]:
    """Yield the chunks of a document, which together contain all of its text.

    Each chunk has an id and the metadata that a citation needs; `root` is the path that the
    document was indexed under.
    """
    chunks = _chunks(document)
    place = _Places(document)
    common = {
        "source": document.source,
        "title": document.title,
        "content_hash": document.content_hash,
        "chunks": len(chunks),
        "root": root,
    }
    for number, chunk in enumerate(chunks):
        yield ChunkText(
            chunk_id(document.source, document.content_hash, number),
            _joined(document.text, chunk.pieces),
            {**common, **place.of(chunk), "chunk": number, "start": chunk.start},
        )


def chunk_id(source: str, content_hash: str, number: int) -> str:
    """Name chunk `number` of one version of a document."""
    return digest(source, content_hash, str(number))


def text_to_embed(chunk: "Document") -> str:
    """Return the text to embed: the chunk without markup, its title and headings before it.

    Headings that the chunk begins with are not repeated.
    """
    text = without_markup(chunk.page_content)
    section = str(chunk.metadata.get("section") or "")
    if without_markup(section.rpartition(_SEPARATOR)[2]) in text[:_HEADING_WITHIN]:
        section = ""
    return " // ".join(filter(None, (str(chunk.metadata.get("title") or ""), section, text)))


class _Places:
    """Say where a chunk stands in its document."""

    def __init__(self, document: SourceText) -> None:
        self._document = document
        self._starts = _unit_starts(document)

    def of(self, chunk: _Chunk) -> dict[str, Any]:
        number = self._document.number or bisect_right(self._starts, chunk.start)
        place: dict[str, Any] = {
            "position": f"{self._document.unit} {number}",
            "kind": chunk.kind,
        }
        if self._document.unit == "line":
            place["lines"] = lines_written(self._numbers(chunk.pieces))
        elif self._starts:
            place["places"] = places_written(self._numbers(chunk.pieces))
        if self._document.url:
            place["url"] = self._document.url
        if chunk.path:
            place["section"] = _SEPARATOR.join(chunk.path)
        return place

    def _numbers(self, pieces: Sequence[_Piece]) -> Iterator[int]:
        """Yield the line, page, … of the file for each line of the chunk."""
        for number, ((start, end), glue) in enumerate(pieces):
            if number and glue == "\n\n":
                yield max(self._place(start) - (self._document.unit == "line"), 1)
            yield self._place(start)
            text = self._document.text
            for line in re.finditer("\n", text[start : max(start, end - 1)]):
                yield self._place(start + line.end())

    def _place(self, offset: int) -> int:
        return bisect_right(self._starts, offset)


def _unit_starts(document: SourceText) -> Sequence[int]:
    match document.unit:
        case "line":
            return line_offsets(document.text)[:-1]
        case "paragraph":
            return [0, *(match.end() for match in re.finditer("\n\n", document.text))]
        case "row" | "record":
            return ()
        case _:
            return document.pages


def _joined(text: str, pieces: Sequence[_Piece]) -> str:
    parts = [part for (start, end), glue in pieces for part in (glue, text[start:end])]
    return "".join(parts[1:])


def _chunks(document: SourceText) -> list[_Chunk]:
    """Join small sections, cut large ones."""
    text, chunks, waiting = document.text, list[_Chunk](), list[_Section]()
    for section in _sections(document):
        length = sum(one.length for one in waiting)
        fits = length + section.length <= CHUNK_SIZE and min(length, section.length) <= SMALL
        if waiting and not fits:
            chunks += _filled(text, waiting)
            waiting = []
        waiting.append(section)
    return chunks + _filled(text, waiting)


def _sections(document: SourceText) -> Iterator[_Section]:
    text = document.text
    blocks = blocks_of(text, document.markup)
    paths = iter(section_paths([one for one in blocks if one.level], document.title))
    section = _Section(())
    lead: Span | None = None
    for number, block in enumerate(blocks):
        if block.kind == "heading":
            if section.atoms and not section.atoms[-1].heading:
                yield section
                section = _Section(())
            # A heading without text of its own stays with the next one.
            section, lead = _Section(next(paths), section.atoms), None
            heading = _atom(text, "prose", (block.start, block.end))
            section.atoms.append(heading._replace(heading=True, announces=True))
            continue
        follower = blocks[number + 1] if number + 1 < len(blocks) else None
        if block.kind == "prose":
            *before, last = _prose(text, block)
            announces = _announces(text, last.span, follower)
            section.atoms += [*before, last._replace(announces=announces)]
            lead = last.span if announces else None
        else:
            section.atoms += _structured(text, block, lead)
            lead = None
    if section.atoms:
        yield section


def _prose(text: str, block: Block) -> list[_Atom]:
    """Return a paragraph as one atom, or its sentences if it is too long for a chunk.

    What a directive holds is one block, whose paragraphs are told apart if it is that long.
    """
    atoms = [
        _atom(text, "prose", span)
        for span in _cut(text, (block.start, block.end), _WAYS["prose"], CHUNK_SIZE)
    ]
    return [
        *(one._replace(announces=_names_alone(text, one.span)) for one in atoms[:-1]),
        *atoms[-1:],
    ]


def _names_alone(text: str, span: Span) -> bool:
    """Return whether a paragraph is no more than the line of a directive, which names the next."""
    return _DIRECTIVE.fullmatch(text, *span) is not None


def _structured(text: str, block: Block, lead: Span | None) -> Iterator[_Atom]:
    """Yield a list, a table or code whole if it fits, else cut, with what its parts repeat."""
    kind: Kind = "prose" if block.kind == "heading" else block.kind
    whole = _atom(text, kind, (block.start, block.end))
    if whole.length <= CHUNK_SIZE:
        leads_in = kind == "list" and _ends_with_colon(text, whole.span)
        yield whole._replace(announces=leads_in)
        return
    context: list[_Piece] = []
    if lead is not None and lead[1] - lead[0] <= LONGEST_CONTEXT:
        context.append(_Piece(lead))
    glue: Literal["\n", "\n\n"] = "\n\n"
    head = _RULES.sub("", text[block.start : block.head])
    if head and len(head) <= LONGEST_CONTEXT:
        context.append(_Piece((block.start, len(text[: block.head].rstrip()))))
        glue = "\n\n" if text.startswith("\n", block.head) else "\n"
    taken = sum(_length(text[start:end]) for (start, end), _ in context)
    room = max(CHUNK_SIZE - taken, LEAST_ROOM)
    *most, last = _cut(text, (block.start, block.end), _WAYS[kind], room)
    items = _items(text, block) if kind == "list" else {}
    tail = (block.tail, block.end) if block.tail else None
    for number, span in enumerate(most):
        repeated = [*(context if number else ()), *_term_above(text, items, span)]
        atom = _atom(text, kind, span)._replace(context=tuple(repeated), glue=glue, tail=tail)
        leads_in = kind == "list" and (_ends_with_colon(text, span) or items.get(span, False))
        # A head says nothing without more, nor does what leads in the items within one.
        yield atom._replace(announces=leads_in or span[1] <= block.head)
    repeated = [*context, *_term_above(text, items, last)]
    yield _atom(text, kind, last)._replace(context=tuple(repeated), glue=glue)


def _items(text: str, block: Block) -> Mapping[Span, bool]:
    """Return the first line of each item of a list, and whether it names what is below it."""
    items: dict[Span, bool] = {}
    for match in _ITEM_AND_NEXT.finditer(text, block.start, block.end):
        start, end = match.span(1)
        below = match[2]
        is_apart = below is not None and _indentation(below) > _indentation(match[1])
        items[start, end] = is_apart and end - start <= OVERLAP and match[1][-1] not in ".!?:;,"
    return items


def _term_above(text: str, items: Mapping[Span, bool], span: Span) -> list[_Piece]:
    """Return the term of the item that a span is from the middle of, unless it names itself.

    In the middle of code, it would be a line of the code.
    """
    starts = list(items)
    number = bisect_left(starts, (span[0], 0))
    depth = _indentation(text[text.rfind("\n", 0, span[0]) + 1 : span[1]])
    if number < len(starts) and starts[number][0] == span[0] and items[starts[number]]:
        return []
    for start, end in map(starts.__getitem__, range(number - 1, -1, -1)):
        if depth == 0:
            break
        if _indentation(text[start:end]) < depth:
            depth = _indentation(text[start:end])
            if items[start, end]:
                is_within_code = len(_FENCE.findall(text, end, span[0])) % 2
                return [] if is_within_code else [_Piece((start, end))]
    return []


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _atom(text: str, kind: Kind, span: Span) -> _Atom:
    start, end = span
    after = text[end : end + 2]
    return _Atom(kind, span, _length(text[start:end]) + len(after) - len(after.lstrip()))


def _announces(text: str, span: Span, follower: Block | None) -> bool:
    """Return whether what a span holds is about the block that follows, if one does."""
    if follower is None or follower.kind == "heading":
        return False
    words = text[span[0] : span[1]]
    if _ends_with_colon(text, span):
        return True
    if follower.kind != "prose" and names_next(split_sentences(words)[-1]):
        return True
    is_short = len(words.split()) <= LONGEST_QUESTION
    if is_short and asks(words) and len(split_sentences(words)) == 1:
        return True
    rows = words.split("\n")
    if len(rows) > 1:
        return underlines_title(rows, len(rows) - 1)  # As in plain text, which has no headings.
    first_below = text[follower.start : follower.end].partition("\n")[0]
    return is_term((text[span[0] : follower.start] + first_below).split("\n"), 0)


def _ends_with_colon(text: str, span: Span) -> bool:
    return text[span[0] : span[1]].rstrip(_CLOSING).endswith(":")


def _filled(text: str, sections: Sequence[_Section]) -> list[_Chunk]:
    """Put the atoms of sections into chunks of about equal size."""
    atoms = [atom for section in sections for atom in section.atoms]
    if not atoms:
        return []
    path = _common([one.path for one in sections])
    total = sum(atom.length for atom in atoms)
    number = ceil(total / CHUNK_SIZE)
    chunks: list[_Chunk] = []
    current: list[_Atom] = []
    context: tuple[_Piece, ...] = ()
    repeated = own = 0
    for atom in atoms:
        enough = own + atom.length / 2 > total / number and len(chunks) + 1 < number
        full = enough or repeated + own + atom.length > CHUNK_SIZE
        if full and not all(one.announces for one in current):
            kept = len(current)
            while current[kept - 1].announces:
                kept -= 1
            chunks.append(_chunk(text, path, context, current[:kept]))
            previous, current = current[kept - 1], current[kept:]
            context = _context(previous, (current or [atom])[0])
            repeated = sum(_length(text[start:end]) for (start, end), _ in context)
            own = sum(one.length for one in current)
        current.append(atom)
        own += atom.length
    return [*chunks, _chunk(text, path, context, current)]


def _context(before: _Atom, atom: _Atom) -> tuple[_Piece, ...]:
    """Return what an atom that begins a chunk repeats: its own context, or the sentence before."""
    if atom.context or atom.heading:
        return atom.context
    repeats = before.kind == atom.kind == "prose" and not before.heading
    return (_Piece(before.span),) if repeats and before.length <= OVERLAP else ()


def _chunk(
    text: str, path: tuple[str, ...], context: Sequence[_Piece], atoms: Sequence[_Atom]
) -> _Chunk:
    pieces = list(context)
    glue = atoms[0].glue
    for atom in atoms:
        start, end = atom.span
        gap = text[pieces[-1].span[1] : start] if pieces else "."
        if not gap.strip() and gap.count("\n") <= len(glue):
            pieces[-1] = pieces[-1]._replace(span=(pieces[-1].span[0], end))
        else:
            pieces.append(_Piece(atom.span, glue))
        glue = "\n\n"
    if atoms[-1].tail is not None:
        pieces.append(_Piece(atoms[-1].tail, "\n"))
    kinds = Counter[Kind]()
    for atom in atoms:
        kinds[atom.kind] += 0 if atom.heading else atom.length
    return _Chunk(path, pieces, atoms[0].span[0], max(kinds, key=lambda kind: kinds[kind]))


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the headings that all paths begin with."""
    shortest = min(paths, key=len)
    for depth, name in enumerate(shortest):
        if any(path[depth] != name for path in paths):
            return shortest[:depth]
    return shortest


def _cut(text: str, span: Span, ways: "Sequence[_Way]", room: int) -> Iterator[Span]:
    """Cut a span that has no room, by the first way that applies, and its parts by the others."""
    start, end = span
    if not text[start:end].strip():
        return
    if not ways or _length(text[start:end]) <= room:
        first = len(text[start:end]) - len(text[start:end].lstrip())
        begin = max(start, text.rfind("\n", 0, start + first) + 1)
        yield begin, start + len(text[start:end].rstrip())
        return
    for length in ways[0](text[start:end]):
        yield from _cut(text, (start, start + length), ways[1:], room)
        start += length


def _by_sentence(text: str) -> Iterator[int]:
    if len(text) > _LONGEST_PARAGRAPH:
        return _by(_LINE)(text)
    return map(len, split_sentences(text))


def _by_item(text: str, *, within: bool = False) -> Iterator[int]:
    """Cut a list at the items that are indented as its first one, or those `within` that one."""
    length, indent = 0, None
    for line in text.splitlines(keepends=True):
        depth = len(line) - len(line.lstrip())
        is_cut = length > 0 or not within
        if is_cut and is_item(line) and (indent is None or depth <= indent):
            if length:
                yield length
            length, indent = 0, depth
        length += len(line)
    yield length


def _by(pattern: re.Pattern[str]) -> "_Way":
    def cut(text: str) -> Iterator[int]:
        at = 0
        for match in pattern.finditer(text):
            yield match.end() - at
            at = match.end()
        if at < len(text):
            yield len(text) - at

    return cut


_Way = Callable[[str], Iterator[int]]
"""Yields the lengths of the parts of a text, which together are the text."""
_by_inner_item = partial(_by_item, within=True)
_BY_WORD = (_by(re.compile(r"\s*\S+\s*")), _by(re.compile(r"[\s\S]{1,60}")))
_BY_LINE = (_by(_LINE), *_BY_WORD)
_WAYS: Mapping[Kind, Sequence[_Way]] = {
    "prose": (_by(_CODE_OR_STANZA), _by_sentence, *_BY_LINE),
    "list": (
        _by_item,
        *[_by_inner_item] * _DEEPEST,
        _by(_CODE_OR_STANZA),
        _by(_STANZA),
        _by_sentence,
        *_BY_WORD,
    ),
    "table": (_by(_ROW), *_BY_LINE),
    "code": (_by(_STANZA), *_BY_LINE),
}


def _length(text: str) -> int:
    """Measure in characters, weighted for scripts and notations that take more tokens.

    Rules between the rows of a grid are not embedded, and do not count.
    """
    text = _RULE_OF_GRID.sub("", text)
    tokens = sum(1 for _ in _TOKEN.finditer(text))
    return max(len(text), _CHARACTERS_PER_TOKEN * tokens)
