"""Strips and their sources: documents and search hits."""

from collections.abc import Sequence

from langchain_core.documents import Document

from crag.parts import Page, Passage
from crag.state import OfferedPassage, Source, Strip, StripKind, WebPage
from crag.text.places import line_places, lines_written
from crag.text.units import Unit

_SECTIONS = " > "
"""Between the headings in the metadata `section`."""


def source_of(document: Document, index: int) -> Source:
    """Name the source of a retrieved document by its metadata (`title`, `url` or `source`).

    A document without an id is named by its retrieval rank, starting with `document-1`.
    """
    metadata = document.metadata
    source = Source(
        id=str(document.id or metadata.get("id") or f"document-{index + 1}"),
        title=title_of(document),
        url=str(metadata.get("url") or metadata.get("source") or ""),
        position=str(metadata.get("position") or ""),
    )
    if metadata.get("lines"):
        source["lines"] = str(metadata["lines"])
    if isinstance(repeats := metadata.get("repeats"), int):
        source["repeats"] = repeats
    if isinstance(also := metadata.get("also"), list):
        source["also"] = also
    return source


def source_within(source: Source, text: str, start: int, end: int) -> Source:
    """Return the source of the characters from `start` to `end` of the `text` that it has.

    Its position becomes the lines, pages, … of the part where the source knows them; lines that the
    text only repeats count where there are no others. Otherwise it stays that of the whole text.
    """
    part, known = text[start:end], source.get("lines", "")
    first = text.count("\n", 0, start + len(part) - len(part.lstrip())) if known else 0
    after = first + part.strip().count("\n") + 1
    unit = source["position"].partition(" ")[0].removesuffix("s") or "line"
    try:
        places = line_places(known, after)[first:]
    except ValueError:  # Another program may write this metadata key otherwise.
        places = []
    if len(places) < after - first:
        return source
    repeats = max(source.get("repeats", 0) - first, 0)
    own = places[repeats:] or places
    low, high = min(begin for begin, _ in own), max(last for _, last in own)
    position = f"{unit} {low}" if low == high else f"{unit}s {low}-{high}"
    narrowed: Source = {**source, "position": position, "lines": lines_written(places)}
    narrowed["repeats"] = repeats
    if not repeats:
        del narrowed["repeats"]
    return narrowed


def strip_of(document: Document, source: Source, unit: Unit) -> Strip:
    """Return a unit of a document as a strip that has not been scored."""
    text, section = document.page_content, str(document.metadata.get("section") or "")
    own = unscored(text[unit.start : unit.end], source_within(source, text, unit.start, unit.end))
    names = [*(section.split(_SECTIONS) if section else ()), *unit.headings]
    if unit.before:
        own["before"] = unit.before
    if names:
        own["headings"] = list(dict.fromkeys(names))
    return own


def passage_of(document: Document, titles: str) -> Passage:
    """Return a document as the evaluator gets it; without title if `titles` is ``none``."""
    if titles == "none":
        return Passage("", document.page_content)
    section = str(document.metadata.get("section") or "")
    return Passage(title_of(document), document.page_content, section)


def title_of(document: Document) -> str:
    """Return the title in a document's metadata, or an empty text."""
    return str(document.metadata.get("title") or "")


def strips_of_snippet(hit: WebPage, index: int) -> list[Strip]:
    """Make a strip of a hit's snippet, or of its title if there is no snippet (official code)."""
    text = hit["snippet"].strip() or hit["title"].strip()
    return [unscored(text, _source_of_hit(hit, index, hit["title"], ""), "web")] if text else []


def strips_of_page(hit: WebPage, page: Page, index: int, titles: str) -> list[Strip]:
    """Make a strip of each paragraph of a page.

    Unless each strip is scored with its title anyway, the title is prepended, as in the official
    code: ``title: paragraph``.
    """
    title = page.title or hit["title"]
    official = f"{title}: " if title and titles != "every_strip" else ""
    return [
        unscored(official + text, _source_of_hit(hit, index, title, f"paragraph {number}"), "web")
        for number, text in enumerate(page.paragraphs, start=1)
    ]


def _source_of_hit(hit: WebPage, index: int, title: str, position: str) -> Source:
    """Name the source of a search hit, starting with `hit-1`."""
    return Source(id=f"hit-{index + 1}", title=title, url=hit["url"], position=position)


def unscored(text: str, source: Source, kind: StripKind = "document") -> Strip:
    """Make a strip that has not been scored."""
    return Strip(text=text, kind=kind, source=source, score=None, kept=False, reason="")


def kept_whole(documents: Sequence[Document], reason: str, first: int = 0) -> list[Strip]:
    """Make one kept strip of each document that has text, for graphs that do not refine.

    `first` is the retrieval rank of the first one.
    """
    ranked = enumerate(documents, first)
    strips = [
        unscored(document.page_content, source_of(document, rank)) for rank, document in ranked
    ]
    return [{**strip, "kept": True, "reason": reason} for strip in strips if strip["text"].strip()]


def offered_document(document: Document, index: int) -> OfferedPassage:
    """Make a passage for reflection of a whole document."""
    strips = kept_whole([document], "offered whole", index)
    title, text = title_of(document), document.page_content
    return OfferedPassage(title=title, text=text, label="document", grade="", strips=strips)
