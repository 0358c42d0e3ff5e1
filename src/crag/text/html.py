"""An HTML page as blocks, and the title and main content of one on the web."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from crag.text.blocks import HARD_BREAK, Block, Item, Row, escaped, with_title
from crag.text.tables import one_head, with_labels, with_one_head
from crag.text.visible import PLACE, visible_tree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_SEPARATOR = re.compile(r"\s+\W{1,2}\s|\s*\|")
"""Stands between the title of a page and that of its site."""
_INLINE = frozenset(
    ["a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "del", "dfn", "em", "font", "hi",
     "i", "img", "input", "ins", "kbd", "label", "mark", "q", "ref", "s", "samp", "small", "span",
     "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"]
)  # fmt: skip
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_NUMBER = re.compile("[0-9]{1,9}")
_MOST_SPANNED = 100
"""Rows and columns of one cell; more are no table that anybody reads."""
_MOST_WORDS_OF_CELL = 150
"""Words; a table with a cell of more serves the layout of a page."""
_DEEPEST_LIST = 40
"""Lists within each other; deeper ones, as of marks that are never closed, are paragraphs."""
_APART = ["nav", "form", "title"]
"""Elements that are not part of the text of a page."""
_FEWEST_LINKS, _MOSTLY_LINKS = 3, 0.7
"""Links in a list, and their share of its letters, that make it a table of contents."""
_TITLE = re.compile("(?:admonition|alert)-title$")
"""Class of the title of a note."""
_BASE = re.compile(r"(?:[\d)\]]|\b[^\W_])\Z")
_POWER = re.compile(r"[-+\N{MINUS SIGN}]?\d+")
_LEAST_MAIN = 0.25
"""Share of a page's characters above which a main element is what the page says; below it, the
element is a frame, such as that of a search, and the text stands beside it."""
_WORD = re.compile(r"\w")
_FIELDS = {"author": "author", "article:author": "author", "dc.creator": "author",
           "date": "date", "dc.date": "date", "dcterms.date": "date", "version": "version",
           "article:published_time": "date"}  # fmt: skip
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight(?:-source)?)-([\w+#-]+)")
_OF_TRAFILATURA = {
    "head": "h2", "list": "ul", "item": "li", "row": "tr", "cell": "td", "lb": "br",
}  # fmt: skip
"""Its names of elements, in HTML."""
_BREAK = "\x02"
_END_OF_PARAGRAPH = re.compile(rf"{_BREAK}\s*{_BREAK}|\n[ \t]*\n")


class Shown(NamedTuple):
    """What readers of a file see."""

    blocks: Sequence[Block]
    title: str = ""
    """That which it names itself, if it does."""
    fields: Mapping[str, str] | None = None
    """What else it says of itself, such as author, date and version."""
    fields_at: tuple[int, int] = (1, 1)
    """The first and last line of what says so."""


def read_page(text: str) -> Shown:
    """Return what readers of a page see, but for navigation, forms and the buttons of its tools.

    It is the main element of a page that has one with more than a quarter of its text.

    Raises:
        ContentError: its elements nest too deep.
    """
    tree = visible_tree(text, whole=True)
    fields: dict[str, str] = {}
    for element in tree.iter("meta"):
        name = (element.get("name") or element.get("property") or "").lower()
        if name in _FIELDS and (value := " ".join(element.get("content", "").split())):
            fields.setdefault(_FIELDS[name], value)
    title = tree.find(".//title")
    _leave_out(tree)
    mains = [one for one in tree.iter() if one.tag == "main" or one.get("role") == "main"]
    is_main = len(mains) == 1 and _letters(mains[0]) > _LEAST_MAIN * _letters(tree)
    main = mains[0] if is_main else tree
    return Shown(_Reading().blocks(main), _title(title, main), fields)


def blocks_of_html(text: str) -> list[Block]:
    """Return all blocks of a piece of HTML, with the places that its attributes `PLACE` name.

    Raises:
        ContentError: its elements nest too deep.
    """
    tree = visible_tree(text, whole=True)
    _leave_out(tree)
    return _Reading().blocks(tree)


def _leave_out(tree: "HtmlElement") -> None:
    """Take out what serves to find or use a page, and marks of notes."""
    from lxml.etree import strip_elements

    strip_elements(tree, *_APART, with_tail=False)
    for element in list(tree.iter("a", "button")):
        if element.tag == "a":
            is_note = "footnote" in element.get("class", "") or not _WORD.search(_text(element))
            is_apart = is_note and element.get("href", "").startswith("#")
        else:  # One in a heading opens a text.
            is_apart = next(element.iterancestors("h1", "h2", "h3", "h4", "dt"), None) is None
        if is_apart:
            element.drop_tree()
    for picture in tree.iter("img"):
        around = picture.getparent()
        if around.tag == "td" or "".join(around.xpath("text()")).strip():  # Else it is none.
            picture.text = picture.get("alt")
    _mark_powers(tree)
    _leave_out_contents(tree)


def _leave_out_contents(tree: "HtmlElement") -> None:
    """Take out what mostly is links within the page."""
    for element in list(tree.iter("ul", "ol", "dl", "div", "table")):
        links = list(element.iter("a"))
        leads_within = all(link.get("href", "").startswith("#") for link in links)
        if len(links) < _FEWEST_LINKS or not leads_within or any(element.iter(*_HEADINGS)):
            continue
        if sum(map(_letters, links)) > _MOSTLY_LINKS * _letters(element):
            element.drop_tree()


def _letters(element: "HtmlElement") -> int:
    return sum(len("".join(text.split())) for text in element.itertext())


class _Reading:
    """Makes blocks of elements, in the order of the page."""

    def __init__(self) -> None:
        self._place = (1, 1)

    def blocks(self, element: "HtmlElement") -> list[Block]:
        """Return the blocks within an element."""
        place = self._enter(element)
        found: list[Block] = []
        words = escaped(element.text or "")
        for child in element:
            tag = str(child.tag)
            if all(str(one.tag) in _INLINE for one in child.iter()):
                words += _inline(child)
            else:
                found += _paragraphs(words, place)
                found += self._block(child, tag)
                words, place = "", self._place
            words += escaped(child.tail or "")
        return [*found, *_paragraphs(words, place)]

    def _enter(self, element: "HtmlElement") -> tuple[int, int]:
        if written := element.get(PLACE):
            first, _, last = written.partition("-")
            self._place = int(first), int(last or first)
        return self._place

    def _block(self, element: "HtmlElement", tag: str) -> list[Block]:  # noqa: PLR0911 - one for each kind
        place = self._enter(element)
        title = next(iter(element), None)
        if title is not None and (title.tag == "summary" or _TITLE.search(title.get("class", ""))):
            text = _line(title, marked=False)
            title.drop_tree()
            return with_title(text, self.blocks(element), *place)
        match tag:
            case tag if tag in _HEADINGS:
                text = _line(element, marked=False)
                return [Block("heading", *place, text, level=int(tag[1]))] if text else []
            case "pre":
                return _code(element, place)
            case "ul" | "ol" | "menu":
                return self._list(element)
            case "dl":
                return self._definitions(element)
            case "table" if _holds_data(element):
                return self._table(element)
            case _:
                return self.blocks(element)

    def _list(self, element: "HtmlElement") -> list[Block]:
        place, items = self._place, list[Item]()
        number = _number(element.get("start", ""), 1)
        for child in element:
            if child.tag != "li" and items:
                items[-1].blocks.extend(self._block(child, str(child.tag)))
            elif blocks := self.blocks(child):
                number = _number(child.get("value", ""), number)
                items.append(Item(f"{number}." if element.tag == "ol" else "-", blocks))
                number += 1
        held = [block for item in items for block in item.blocks]
        is_deep = len([*element.iterancestors("ul", "ol", "menu")]) > _DEEPEST_LIST
        if is_deep or any(block.kind == "heading" for block in held):
            return held  # A list of what has headings is no list.
        return [Block("list", *place, items=items)] if items else []

    def _definitions(self, element: "HtmlElement") -> list[Block]:
        """Take terms and what they mean as an item: each is not understood without the other."""
        place, items = self._place, list[tuple[tuple[int, int], list[str], list[Block]]]()
        for one in element.iter("dt", "dd"):
            if next(one.iterancestors("dl")) is not element:
                continue
            if not items or (one.tag == "dt" and items[-1][2]):
                items.append((self._enter(one), [], []))
            if one.tag == "dd":
                items[-1][2].extend(self.blocks(one))
            elif text := _line(one, marked=False):
                items[-1][1].append(text if "`" in text else f"**{text}**")
        found = [with_title(", ".join(terms), blocks, *here) for here, terms, blocks in items]
        held = [Item("-", blocks) for blocks in found if blocks]
        return [Block("list", *place, items=held)] if held else []

    def _table(self, table: "HtmlElement") -> list[Block]:
        place = self._place
        captions = "".join(_line(one) for one in table if one.tag == "caption")
        caption = with_title(captions, [], *place)
        rows = [one for one in table.iter("tr") if next(one.iterancestors("table")) is table]
        owns = [row.xpath("td|th") for row in rows]
        cells = (
            [(_line(one), _spanned(one, "colspan"), _spanned(one, "rowspan")) for one in own]
            for own in owns
        )
        heads, body, are_named = list[Row](), list[Row](), True
        for row, own, texts in zip(rows, owns, _spread(cells), strict=True):
            written = Row(texts, *self._enter(row))
            if not any(texts):
                continue
            is_head = row.getparent().tag == "thead" or {one.tag for one in own} == {"th"}
            if is_head and not body and not (heads and texts[1:] == texts[:-1]):
                heads.append(written)
            else:
                body.append(written)
                is_bold = texts[0].strip("*") != texts[0]
                are_named = are_named and bool(own) and (own[0].tag == "th" or is_bold)
        if heads or are_named:
            head = one_head(heads) if heads else Row([""], place[0], place[0])
            rows = with_labels([head, *body])
        else:
            rows = with_one_head(body)
        return [*caption, Block("table", *place, rows=rows)] if heads or body else caption


def _spread(rows: Iterable[Sequence[tuple[str, int, int]]]) -> Iterator[list[str]]:
    """Yield the texts of each row; a cell over several columns and rows, so many, is in each.

    Of a row that is one cell there is one text.
    """
    going_on: dict[int, tuple[str, int, int]] = {}
    for row in rows:
        cells, written, is_one = list(row), list[str](), len(row) == 1 and not going_on
        while cells or len(written) in going_on:
            goes_on = len(written) in going_on
            text, width, height = going_on.pop(len(written)) if goes_on else cells.pop(0)
            for _ in range(1 if is_one else width):
                if height > 1:
                    going_on[len(written)] = text, 1, height - 1
                written.append(text)
        yield written


def _holds_data(table: "HtmlElement") -> bool:
    """Return whether a table has short cells, rather than being used for the layout of a page."""
    cells = [one for one in table.iter("td", "th") if next(one.iterancestors("table")) is table]
    if next(table.iter("pre", *_HEADINGS), None) is not None:
        return False
    is_wide = any(one.tag == "th" or one.getnext() is not None for one in cells)
    return is_wide and all(len(_text(one).split()) <= _MOST_WORDS_OF_CELL for one in cells)


def _code(element: "HtmlElement", place: tuple[int, int]) -> list[Block]:
    for line in element.iter("br"):
        line.tail = f"\n{line.tail or ''}"
    text = "".join(map(str, element.itertext())).strip("\n").rstrip()
    around = [element, *element.iter("code"), *list(element.iterancestors())[:2]]
    names = " ".join(one.get("class", "") for one in around)
    language = _LANGUAGE.search(names)
    return [Block("code", *place, text, info=language[1] if language else "")] if text else []


def _paragraphs(words: str, place: tuple[int, int]) -> Iterator[Block]:
    for part in _END_OF_PARAGRAPH.split(words):
        lines = (" ".join(line.split()) for line in part.split(_BREAK))
        if text := HARD_BREAK.join(filter(None, lines)):
            yield Block("text", *place, text)


def _line(element: "HtmlElement", *, marked: bool = True) -> str:
    """Write what stands within an element on one line; items begin with their marks."""
    return " ".join(_words(element, marked=marked).replace(_BREAK, " ").split())


def _words(element: "HtmlElement", *, marked: bool) -> str:
    words = escaped(element.text or "")
    for child in element:
        words += _inline(child, marked=marked) + escaped(child.tail or "")
    return words


def _inline(element: "HtmlElement", *, marked: bool = True) -> str:
    tag = str(element.tag)
    match tag:
        case "br":
            return _BREAK
        case "code" | "kbd" | "samp" | "tt":
            text = " ".join("".join(map(str, element.itertext())).split())
            ticks = "``" if "`" in text else "`"
            return f"{ticks}{text}{ticks}" if text else ""
    words = _words(element, marked=marked)
    core = words.strip()
    if tag == "a":
        address = element.get("href", "")
        is_shown = address.startswith("http") and address.rstrip("/") not in core
        return f"{words.rstrip()} ({address})" if is_shown and _WORD.search(core) else words
    if (mark := _MARKS.get(tag)) and marked and core and _BREAK not in core:
        start = words.index(core)
        return f"{words[:start]}{mark}{core}{mark}{words[start + len(core) :]}"
    if tag == "li":
        items = element.getparent()
        mark = f"{items.index(element) + 1}." if items.tag == "ol" else "•"
        return f" {mark} {core}"
    return words if tag in _INLINE else f" {words} "


def _mark_powers(tree: "HtmlElement") -> None:
    """Write 2 to the power of 31 as 2^31: without its place above the line it would be 231."""
    for element in tree.iter("sup"):
        before = element.getprevious()
        text = (element.getparent().text if before is None else before.tail) or ""
        is_note = next(element.iter("a"), None) is not None or element.getparent().tag == "a"
        if not is_note and _BASE.search(text.rstrip()) and _POWER.fullmatch(_text(element)):
            element.text = f"^{_text(element)}"
            del element[:]


def _spanned(cell: "HtmlElement", name: str) -> int:
    return min(max(_number(cell.get(name, ""), 1), 1), _MOST_SPANNED)


def _number(written: str, default: int) -> int:
    return int(written) if _NUMBER.fullmatch(written) else default


def _title(element: "HtmlElement | None", main: "HtmlElement") -> str:
    """Return the only heading of a page where its title says that and the site; else its title."""
    title = "" if element is None else _text(element)
    for end in main.xpath(".//h1//br"):
        end.tail = f" {end.tail or ''}"
    headings = [heading for one in main.iter("h1") if (heading := _text(one))]
    if len(headings) == 1 and _SEPARATOR.match(title.removeprefix(headings[0])):
        return headings[0]
    return title or next(iter(headings), "")


def read_html(text: str) -> tuple[str, list[str]]:
    """Return the title and the paragraphs of a page's main content, as its readers see it.

    Where trafilatura finds no main content, every `p` is taken, as the official code does. A list
    is one paragraph, and so is a table. Headings within the text are left out.
    """
    import trafilatura

    # It reports each page without main content as an error.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    tree = visible_tree(text)
    _mark_powers(tree)
    title = _title(tree.find(".//title"), tree)
    paragraphs = [_line(element, marked=False) for element in tree.iter("p")]
    main = trafilatura.bare_extraction(
        tree, favor_recall=True, include_comments=False, with_metadata=False
    )
    body = getattr(main, "body", None)
    for element in () if body is None else body.iter():
        element.tag = _OF_TRAFILATURA.get(element.tag, element.tag)
    blocks = [] if body is None else _Reading().blocks(body)
    return title, list(map(_paragraph, blocks)) or paragraphs


def _paragraph(block: Block) -> str:
    """Write a block as one line, but for a heading, which is empty."""
    match block.kind:
        case "heading":
            return ""
        case "list":
            items = (" ".join(map(_paragraph, item.blocks)) for item in block.items)
            return "; ".join(items)
        case "table":
            return "; ".join(", ".join(filter(None, row.cells)) for row in block.rows)
        case _:
            return " ".join(block.text.split())


def _text(element: "HtmlElement") -> str:
    return " ".join("".join(element.itertext()).split())
