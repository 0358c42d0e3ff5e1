"""Sources of strips: documents and search hits."""

import re
from collections.abc import Sequence
from typing import Literal

from langchain_core.documents import Document

from crag.parts import Page, Passage
from crag.state import FoundHit, OfferedPassage, Source, Strip
from crag.text.places import lines_between, lines_of_part

_FIRST_PLACE = re.compile(r"[a-z]+ (\d{1,9})")
_CLOSING_FENCE = re.compile(r"\n[ \t>]*(?:`{3,}|~{3,})\s*\Z")


def source_of(document: Document, index: int) -> Source:
    """Name the source of a retrieved document by its metadata (`title`, `url` or `source`).

    A document without an id is named by its retrieval rank, starting with `document-1`.
    """
    metadata = document.metadata
    url = str(metadata.get("url") or metadata.get("source") or "")
    source = Source(
        id=str(document.id or metadata.get("id") or f"document-{index + 1}"),
        title=title_of(document),
        url=url,
        position=str(metadata.get("position") or ""),
    )
    if metadata.get("lines"):
        source["lines"] = str(metadata["lines"])
    elif metadata.get("places"):
        source["places"] = str(metadata["places"])
    return source


def source_within(source: Source, text: str, start: int, end: int) -> Source:
    """Return the source of the characters from `start` to `end` of the `text` that it has.

    Its position becomes the lines, pages, … of the part where the source knows them; otherwise it
    stays that of the whole text.
    """
    key: Literal["lines", "places"] = "lines" if "lines" in source else "places"
    known = source.get(key, "")
    unit = "line" if key == "lines" else source["position"].partition(" ")[0].removesuffix("s")
    if not (known and unit):
        return source
    try:
        first, last = lines_between(text, known, start, end)
        inner = lines_of_part(text, known, start, end)
    except (ValueError, IndexError):  # Another program may write this metadata key otherwise.
        return source
    first, last = _without_repeated(first, last, inner, source["position"], text[start:end])
    position = f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"
    narrowed: Source = {**source, "position": position}
    narrowed[key] = inner
    return narrowed


def _without_repeated(
    first: int, last: int, inner: str, position: str, text: str
) -> tuple[int, int]:
    """Leave out what a part of a list, a table or code repeats: what opens and closes it."""
    *others, closing = inner.split()
    if (own := _FIRST_PLACE.match(position)) and first < int(own[1]) <= last:
        places = [int(one.partition("*")[0]) for one in others if "*" in one]
        before = max((place for place in places if place < int(own[1])), default=0)
        # The sentence before, on the page before, is no repetition from afar.
        first = first if before == int(own[1]) - 1 else int(own[1])
    if others and closing == str(last) and _CLOSING_FENCE.search(text):
        before = int(others[-1].rpartition("-")[2])
        last = before if before >= first else last
    return first, last


def passage_of(document: Document, titles: str) -> Passage:
    """Return a document as the evaluator gets it; without title if `titles` is ``none``."""
    if titles == "none":
        return Passage("", document.page_content)
    section = str(document.metadata.get("section") or "")
    return Passage(title_of(document), document.page_content, section)


def title_of(document: Document) -> str:
    """Return the title in a document's metadata, or an empty text."""
    return str(document.metadata.get("title") or "")


def strips_of_snippet(hit: FoundHit, index: int) -> list[Strip]:
    """Make a strip of a hit's snippet, or of its title if there is no snippet (official code)."""
    text = hit["snippet"].strip() or hit["title"].strip()
    return [unscored(text, _source_of_hit(hit, index, hit["title"], ""))] if text else []


def strips_of_page(hit: FoundHit, page: Page, index: int, titles: str) -> list[Strip]:
    """Make a strip of each paragraph of a page.

    Unless each strip is scored with its title anyway, the title is prepended, as in the official
    code: ``title: paragraph``.
    """
    title = page.title or hit["title"]
    official = f"{title}: " if title and titles != "every_strip" else ""
    return [
        unscored(official + text, _source_of_hit(hit, index, title, f"paragraph {number}"))
        for number, text in enumerate(page.paragraphs, start=1)
    ]


def _source_of_hit(hit: FoundHit, index: int, title: str, position: str) -> Source:
    """Name the source of a search hit, starting with `hit-1`."""
    return Source(id=f"hit-{index + 1}", title=title, url=hit["url"], position=position)


def unscored(text: str, source: Source) -> Strip:
    """Make a strip that has not been scored."""
    return Strip(text=text, source=source, score=None, kept=False, reason="")


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
