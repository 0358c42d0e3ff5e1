"""The numbers of paragraphs in a Word document, which stores only how to count them."""

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from docx.document import Document
    from lxml.etree import _Element

FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""What older programs show in place of the element before it, such as the same text box again."""
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_GONE = ("del", "moveFrom")
_MOST_IN_LETTERS = 4000
_PLACE = re.compile("%([1-9])")
_ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl",
          10: "x", 9: "ix", 5: "v", 4: "iv", 1: "i"}  # fmt: skip


class Item(NamedTuple):
    """The place of a paragraph in a list, or of a heading among those that are numbered."""

    level: int
    """From 0."""
    number: str
    """As Word shows it, such as ``2.``, ``(a)`` or ``1.1``; empty for a bullet."""


class _Level(NamedTuple):
    """How the items of one level are counted."""

    start: int
    form: str
    text: str
    """What is shown; ``%1`` stands for the number of the first level, and so on."""
    restarts: bool = False


def tag(name: str) -> str:
    """Return the name of an element or attribute of Word as lxml writes it."""
    return f"{{{_WORD}}}{name}"


def items_of(document: "Document") -> "dict[_Element, Item]":
    """Return the paragraphs that have a number or a bullet, as Word counts them."""
    from docx.opc.constants import RELATIONSHIP_TYPE

    try:
        numbering = document.part.part_related_by(RELATIONSHIP_TYPE.NUMBERING).element  # type: ignore[attr-defined]
    except KeyError:
        return {}
    lists = _lists(numbering)
    by_style = {style.element.get(tag("styleId")): style.element for style in document.styles}
    counts: dict[str, dict[int, int]] = {}
    used: set[tuple[str, int]] = set()
    items: dict[_Element, Item] = {}
    for paragraph in document.element.body.iter(tag("p")):
        name, place = _numbered_as(paragraph, by_style)
        abstract, levels = lists.get(name, ("", {}))
        if place not in levels or not _is_shown(paragraph):
            continue
        count, level = counts.setdefault(abstract, {}), levels[place]
        first = level.restarts and (name, place) not in used
        used.add((name, place))
        count[place] = level.start if first else count.get(place, level.start - 1) + 1
        for deeper in [one for one in count if one > place]:
            del count[deeper]
        items[paragraph] = Item(place, _shown(level, levels, count))
    return items


def _lists(numbering: "_Element") -> dict[str, tuple[str, dict[int, _Level]]]:
    """Return each list by its id: what it shares its counts with, and its levels."""
    shared = {
        one.get(tag("abstractNumId"), ""): {
            int(level.get(tag("ilvl"), "0")): _level(level) for level in one.iter(tag("lvl"))
        }
        for one in numbering.iterchildren(tag("abstractNum"))
    }
    lists = {}
    for one in numbering.iterchildren(tag("num")):
        abstract = _value(one, "abstractNumId")
        levels = dict(shared.get(abstract, {}))
        for change in one.iterchildren(tag("lvlOverride")):
            place = int(change.get(tag("ilvl"), "0"))
            if (other := change.find(tag("lvl"))) is not None:
                levels[place] = _level(other)
            if (start := _value(change, "startOverride")) and place in levels:
                levels[place] = levels[place]._replace(start=int(start), restarts=True)
        lists[one.get(tag("numId"), "")] = abstract, levels
    return lists


def _level(level: "_Element") -> _Level:
    start, form = _value(level, "start") or "1", _value(level, "numFmt") or "decimal"
    return _Level(int(start), form, _value(level, "lvlText"))


def _numbered_as(paragraph: "_Element", by_style: "dict[str, _Element]") -> tuple[str, int]:
    """Return the id of the list and the level of a paragraph, its own or those of its style."""
    name = level = ""
    passed: set[_Element] = set()
    element: _Element | None = paragraph
    while element is not None and element not in passed and not name:
        passed.add(element)
        properties = element.find(tag("pPr"))
        if properties is not None and (numbers := properties.find(tag("numPr"))) is not None:
            name, level = _value(numbers, "numId"), level or _value(numbers, "ilvl")
        parent = _value(element, "basedOn")
        if element is paragraph and properties is not None:
            parent = _value(properties, "pStyle")
        element = by_style.get(parent)
    return name, int(level or 0)


def _is_shown(paragraph: "_Element") -> bool:
    """Return whether a paragraph counts: not if it was deleted, or stands in for older programs."""
    changes = paragraph.find(f"{tag('pPr')}/{tag('rPr')}")
    gone = changes is not None and any(changes.find(tag(one)) is not None for one in _GONE)
    return not gone and not any(one.tag == FALLBACK for one in paragraph.iterancestors())


def _shown(level: _Level, levels: dict[int, _Level], count: dict[int, int]) -> str:
    if level.form == "bullet":
        return ""

    def number(place: re.Match[str]) -> str:
        at = int(place[1]) - 1
        outer = levels.get(at, level)
        return _written(count.get(at, outer.start), outer.form)

    return " ".join(_PLACE.sub(number, level.text).split())


def _written(number: int, form: str) -> str:
    if not 0 < number < _MOST_IN_LETTERS:
        return str(number)
    if form in {"lowerLetter", "upperLetter"}:
        written = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form in {"lowerRoman", "upperRoman"}:
        written = ""
        for value, letters in _ROMAN.items():
            written += letters * (number // value)
            number %= value
    else:
        return f"{number:02}" if form == "decimalZero" else str(number)
    return written.upper() if form.startswith("upper") else written


def _value(element: "_Element", name: str) -> str:
    found = element.find(tag(name))
    return "" if found is None else found.get(tag("val"), "")
