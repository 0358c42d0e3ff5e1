"""Title and text of an HTML page: the main content of one on the web, or all that one shows."""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import count, repeat
from textwrap import indent
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from crag.text.visible import visible_tree

if TYPE_CHECKING:
    from lxml.etree import _Element
    from lxml.html import HtmlElement

_SEPARATOR = re.compile(r"\s+([|·•»:–—-]|::|//)\s+|\s*\|\s*")
_SURE_SEPARATORS = frozenset("|·•»")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_INLINE = re.compile(
    "a|abbr|b|bdi|bdo|cite|code|data|del|dfn|em|font|hi|i|ins|kbd|mark|ref|s|samp|small|span|strong|"
    "sub|sup|time|tt|u|var"
)
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|d[dlt]|details|div|fieldset|fig(caption|ure)|footer|"
    "h[1-6r]|header|li|main|ol|p|pre|section|summary|t(able|body|foot|head|r)|ul"
)
_HEADING, _ITEM_MARK = re.compile("h[1-6]"), re.compile(r" *(?:-|\d+\.) ")
_NUMBER = re.compile("[0-9]{1,9}")
_MOST_SPANNED = 100
"""Rows and columns of one cell; more are no table that anybody reads."""
_APART = ["nav", "form", "title"]
"""Elements that are not part of the text of a page."""
_ROLES_APART = frozenset({"navigation", "search", "dialog", "alertdialog"})
_BANNER = re.compile(r"\bcookie-?_?(?:banner|bar|consent|notice|popup)\b", re.IGNORECASE)
_NAMES_APART = frozenset(
    {"navheader", "navfooter", "docnav", "nav-panel", "toc", "toctree-wrapper", "indexdiv",
     "indextable", "nosearch"}
)  # fmt: skip
"""Classes and ids of what DocBook, Publican, Texinfo, AsciiDoc and Sphinx add to find pages by, and
of what sites leave out of their own search."""
_NOTE_MARKS = frozenset({"footnote", "footnoteref", "footnote-ref", "footnote-reference"})
_FEWEST_LINKS = 3
"""Links, and nothing else, that make a list one of contents or a menu."""
_NOTES = frozenset({"note", "tip", "important", "caution", "warning"})
"""Classes of what DocBook puts between paragraphs, with a heading that is none of the page's."""
_BASE, _POWER = re.compile(r"(?:\d|\b[^\W_])\Z"), re.compile(r"[-+\N{MINUS SIGN}]?(?:\d+|[^\W_])")
_LEAST_MAIN = 0.25
"""Share of a page's characters above which a main element is what the page says; below it, the
element is a frame, such as that of a search, and the text stands beside it."""
_WORD = re.compile(r"\w")
_FEWEST_LETTERS = 3
"""A title's first part is only kept alone if it has them."""


class HtmlText(NamedTuple):
    """All that an HTML page shows."""

    title: str
    url: str
    """The canonical address that the page names; empty if it names none."""
    text: str
    """As Markdown: its blocks, an empty line between two of them."""


def read_whole_html(text: str) -> HtmlText:
    """Return what readers of a page see, but for navigation, forms and the buttons of its tools.

    It is the main element of a page that has one with more than a quarter of its text.

    Raises:
        ContentError: its elements nest too deep.
    """
    from lxml.etree import strip_elements

    tree = visible_tree(text, whole=True)
    title = _text(element) if (element := tree.find(".//title")) is not None else ""
    canonical = (
        one for one in tree.iter("link") if "canonical" in one.get("rel", "").lower().split()
    )
    links = (link.get("href", "") for link in canonical)
    url = next((url for url in links if url.startswith(("http://", "https://"))), "")
    strip_elements(tree, *_APART, with_tail=False)
    for element in [*filter(_is_apart, tree.iter()), *_menus(tree)]:
        if element.getparent() is not None:
            element.drop_tree()
    _mark_powers(tree)
    _announce_notes(tree)
    mains = [one for one in tree.iter() if one.tag == "main" or one.get("role") == "main"]
    is_main = len(mains) == 1 and len(_text(mains[0])) > _LEAST_MAIN * len(_text(tree))
    main = mains[0] if is_main else tree
    return HtmlText(_title_of_page(title, main), url, _marked_text(main))


def _title_of_page(title: str, main: "HtmlElement") -> str:
    """Return a page's title without what it says of the site after the page's own heading."""
    headings = list(map(_text, main.iter("h1")))
    if len(headings) == 1 and headings[0] and title.startswith(headings[0]):
        is_followed = _SEPARATOR.match(title, len(headings[0])) is not None
        return headings[0] if is_followed else title
    return title


def _is_apart(element: "HtmlElement") -> bool:
    """Return whether an element serves to find or use what the page says, and says nothing."""
    tag = str(element.tag)
    if tag in {"html", "body", "main"}:
        return False
    names = f"{element.get('id', '')} {element.get('class', '')}"
    if element.get("role") in _ROLES_APART or _BANNER.search(names):
        return True
    if not _NAMES_APART.isdisjoint(names.split()):
        return _HEADING.fullmatch(tag) is None  # One that is listed in the contents.
    if tag == "button":
        holders = {str(one.tag) for one in element.iterancestors("h1", "h2", "h3", "h4", "dt")}
        return not holders and element.get("aria-expanded") is None  # One that opens a text.
    if tag == "a" and element.get("href", "").startswith("#"):
        return not _WORD.search(_text(element)) or not _NOTE_MARKS.isdisjoint(names.split())
    return tag in {"ul", "ol", "dl", "div"} and _holds_only_links(element, "#")


def _holds_only_links(element: "HtmlElement", to: str = "") -> bool:
    links = list(element.iter("a"))
    leads_there = all(link.get("href", "").startswith(to) for link in links)
    if len(links) < _FEWEST_LINKS or not leads_there:
        return False
    linked = "".join(text for link in links for text in link.itertext())
    return "".join(linked.split()) == "".join("".join(element.itertext()).split())


def _menus(tree: "HtmlElement") -> list["HtmlElement"]:
    """Return the lists of links above the first heading: they lead to the rest of a site."""
    lists: list[HtmlElement] = []
    for element in tree.iter("ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6"):
        if _HEADING.fullmatch(str(element.tag)):
            return lists
        if _holds_only_links(element):
            lists.append(element)
    return []  # Such as a page that is nothing but a list of pages.


def _announce_notes(tree: "HtmlElement") -> None:
    """Let a note's title announce the note: as a heading it would name what follows the note."""
    for element in [*tree.iter("p", "h1", "h2", "h3", "h4", "h5", "h6")]:
        if element.tag == "p":
            is_title = "admonition-title" in element.get("class", "").split()  # Of Sphinx.
        else:
            is_title = not _NOTES.isdisjoint(element.getparent().get("class", "").split())
        if is_title and (title := _text(element).rstrip(":")):
            element.clear(keep_tail=True)
            element.tag, element.text = "p", f"{title}:"


def _mark_powers(tree: "HtmlElement") -> None:
    """Write 2 to the power of 31 as 2^31: without its place above the line it would be 231."""
    for element in tree.iter("sup"):
        before = element.getprevious()
        text = (element.getparent().text if before is None else before.tail) or ""
        is_note = next(element.iter("a"), None) is not None or element.getparent().tag == "a"
        if _BASE.search(text) and not is_note and _POWER.fullmatch(_text(element)):
            element.text = f"^{(element.text or '').lstrip()}"


def table_rows(rows: Sequence[Sequence[str]]) -> str:
    """Write rows of cells as a Markdown table; the first row is its header."""
    lines = [f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in rows]
    if lines[1:]:
        lines.insert(1, "|" + " --- |" * max(len(rows[0]), 1))
    return "\n".join(lines)


def tables_in(text: str) -> str:
    """Write the first table of a piece of HTML as one of Markdown; empty if it has no head.

    One without a head whose rows are a name in bold and what it stands for is written as a list.
    """
    from lxml.etree import LxmlError
    from lxml.html import fromstring

    try:
        table = next(fromstring(f"<div>{text}</div>").iter("table"), None)
    except (LxmlError, ValueError):
        return ""
    if table is None or not _holds_data(table):
        return ""
    if table.find(".//th") is not None:
        return table_rows(_rows(table))
    rows = list(table.iter("tr"))
    named = [pair for row in rows if (pair := _named(row))]
    is_list = len(named) == len(rows)
    return "\n".join(f"- **{name}:** {value}" for name, value in named) if is_list else ""


def _named(row: "HtmlElement") -> tuple[str, str] | None:
    """Return the name and the value of a row that has two cells, the first one in bold."""
    cells = [one for one in row if one.tag == "td"]
    bold = cells[0].find(".//strong") if len(cells) == 2 else None  # noqa: PLR2004 - name, value
    name, value = (_text(cell, marked=True) for cell in cells) if bold is not None else ("", "")
    is_named = bool(name and value) and bold is not None and _text(bold) == name
    return (name.rstrip(":"), value) if is_named else None


def _marked_text(tree: "HtmlElement") -> str:
    """Write what a page shows as Markdown: headings, lists, tables and code."""
    from lxml.etree import iterwalk

    written = _Blocks()
    walker = iterwalk(tree, events=("start", "end"))
    for event, element in walker:
        tag = str(element.tag)
        if _BLOCK.fullmatch(tag):
            written.end_block()
            written.enter_or_leave(element, event)
        if event == "end":
            gap = "\n" if tag == "br" else " " if tag in {"td", "th"} else ""
            written.parts += [gap, element.tail or ""]
        elif tag == "pre" or (tag == "table" and _holds_data(element)):
            written.add(_fenced(element) if tag == "pre" else table_rows(_rows(element)))
            walker.skip_subtree()
        else:
            written.parts.append(element.text or "")
    written.end_block()
    return "".join(written.pieces)


class _Blocks:
    """Blocks with the mark that each begins with."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.parts: list[str] = []
        """What the open block holds so far."""
        self._mark = ""
        self._margins: list[str] = []
        """What stands before all but the first line of each item that is open."""
        self._marks: list[Iterator[str]] = [repeat("- ")]
        """Of each list that is open, those of its next items."""
        self._after_item = False

    def enter_or_leave(self, element: "HtmlElement", event: str) -> None:
        """Set what the next block begins with."""
        tag = str(element.tag)
        if tag == "li" and event == "start":
            mark = next(self._marks[-1])
            self._mark = "".join(self._margins) + mark
            self._margins.append(" " * len(mark))
        elif tag == "li":
            self._margins.pop()
        elif tag in {"dt", "dd"}:
            self._enter_or_leave_entry(element, event)
        elif tag in {"ol", "ul"} and event == "end":
            self._marks.pop()
        elif tag in {"ol", "ul"}:
            self._marks.append(_item_marks(element))
        elif event == "start" and tag not in {"p", "div"}:
            self._mark = f"{'#' * int(tag[1])} " if _HEADING.fullmatch(tag) else ""
            if self._mark:  # A list of what has headings is no list.
                self._margins = [""] * len(self._margins)

    def _enter_or_leave_entry(self, element: "HtmlElement", event: str) -> None:
        """Take terms and what they mean as an item: each is not understood without the other."""
        before, after = (
            "" if sibling is None else str(sibling.tag)
            for sibling in (element.getprevious(), element.getnext())
        )
        before_it, after_it = (
            ({"dt"}, {"dt", "dd"}) if element.tag == "dt" else ({"dt", "dd"}, {"dd"})
        )
        if event == "start" and before not in before_it:
            self._mark = "".join(self._margins) + "- "
            self._margins.append("  ")
        elif event == "end" and after not in after_it:
            self._margins.pop()

    def end_block(self) -> None:
        for part in _BLANK_LINE.split("".join(self.parts)):
            if text := " ".join(part.split()):
                self.add(text, self._mark)
                self._mark = ""
        self.parts.clear()

    def add(self, block: str, mark: str = "") -> None:
        if block:
            is_item = _ITEM_MARK.fullmatch(mark) is not None
            near = is_item and self._after_item
            self.pieces += [("\n" if near else "\n\n") if self.pieces else ""]
            self.pieces.append(mark + block if mark else indent(block, "".join(self._margins)))
            self._after_item = is_item


def _item_marks(items: "HtmlElement") -> Iterator[str]:
    if items.tag != "ol":
        return repeat("- ")
    first = items.get("start", "")
    return (f"{number}. " for number in count(int(first) if _NUMBER.fullmatch(first) else 1))


def _holds_data(table: "HtmlElement") -> bool:
    """Return whether a table has short cells, rather than being used for the layout of a page.

    Its cells may have lists if it has a head.
    """
    inner = {element.tag for element in table.iter() if element is not table}
    long = {"table", "pre", "h1", "h2", "h3", "h4"}
    return not (long if "th" in inner else long | {"ul", "ol"}) & inner


def _rows(table: "HtmlElement") -> list[list[str]]:
    """Return the cells of each row, with empty ones where a cell goes over several."""
    rows: list[list[str]] = []
    going_on: dict[int, int] = {}
    for row in table.iter("tr"):
        cells: list[str] = []
        for cell in [*(one for one in row if one.tag in {"td", "th"}), None]:
            while going_on.get(len(cells), 0):
                going_on[len(cells)] -= 1
                cells.append("")
            if cell is not None:
                width, height = (_spanned(cell, name) for name in ("colspan", "rowspan"))
                going_on |= dict.fromkeys(range(len(cells), len(cells) + width), height - 1)
                cells += [_text(cell, marked=True), *[""] * (width - 1)]
        rows.append(cells)
    return [row for row in rows if any(row)]


def _spanned(cell: "HtmlElement", name: str) -> int:
    number = cell.get(name, "")
    return min(max(int(number), 1), _MOST_SPANNED) if _NUMBER.fullmatch(number) else 1


def _fenced(element: "HtmlElement") -> str:
    text = "".join(str(part) for part in element.itertext()).strip("\n").rstrip()
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{ticks}\n{text}\n{ticks}" if text else ""


def read_html(text: str, url: str) -> tuple[str, list[str]]:
    """Return the title and the paragraphs of a page's main content, as its readers see it.

    Where trafilatura finds no main content, every `p` is taken, as the official code does. A list
    is one paragraph, and so is a table. Headings within the text are left out.
    """
    tree = visible_tree(text)
    _mark_powers(tree)
    title = _title(tree, url)
    paragraphs = _main_content(tree) or [_text(element) for element in tree.iter("p")]
    return title, paragraphs


def _main_content(tree: "HtmlElement") -> list[str]:
    import trafilatura

    logger = logging.getLogger("trafilatura")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # It reports each page without main content as an error.
    extracted = trafilatura.bare_extraction(
        tree, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
    )
    body = getattr(extracted, "body", None)
    return [] if body is None else [paragraph for child in body for paragraph in _block(child)]


def _block(element: "_Element") -> list[str]:
    match element.tag:
        case "head":
            return []
        case "list":
            return ["; ".join(filter(None, map(_text, element)))]
        case "table":
            rows = (filter(None, map(_text, row)) for row in element.iter("row"))
            return ["; ".join(filter(None, (", ".join(row) for row in rows)))]
        case "div" | "quote" if any(child.tag in {"p", "list"} for child in element):
            return [paragraph for child in element for paragraph in _block(child)]
        case _:
            return [_text(element)]


def _text(element: "_Element", *, marked: bool = False) -> str:
    """Join the text within an element; what is not inline, a line break too, stands apart.

    If `marked`, items of lists begin with their marks.
    """
    from lxml.etree import iterwalk

    parts: list[str] = []
    marks: dict[_Element, Iterator[str]] = {}
    for event, inner in iterwalk(element, events=("start", "end")):
        gap = "" if _INLINE.fullmatch(inner.tag) else " "
        parts += [gap, inner.text or ""] if event == "start" else [gap]
        if marked and event == "start" and inner.tag == "li":
            items = inner.getparent()
            parts.insert(-1, next(marks.setdefault(items, _item_marks(items))).replace("-", "•"))
        if event == "end" and inner is not element:
            parts.append(inner.tail or "")
    return " ".join("".join(parts).split())


def _title(tree: "HtmlElement", url: str) -> str:
    """Return the heading, the title given for sharing, or the page's title without its site's."""
    named = _text(element) if (element := tree.find(".//title")) is not None else ""
    headings = [heading for element in tree.iter("h1") if (heading := _text(element))]
    shared = _property(tree, "og:title")
    for heading in headings:
        if heading.casefold() in named.casefold():
            return heading
    if headings:
        return headings[0]
    return shared or _without_site(named, _property(tree, "og:site_name"), url)


def _property(tree: "HtmlElement", name: str) -> str:
    for element in tree.iter("meta"):
        if element.get("property") == name:
            return " ".join(element.get("content", "").split())
    return ""


def _without_site(title: str, site: str, url: str) -> str:
    """Cut the last part of a title where it plainly names the site."""
    *_, last = [None, *_SEPARATOR.finditer(title)]
    if last is None or len(title[: last.start()].strip()) < _FEWEST_LETTERS:
        return title
    ending = _letters(title[last.end() :])
    host = _letters(urlsplit(url).hostname or "")
    names_site = ending and (ending == _letters(site) or ending in host)
    is_sure = last[0].strip() in _SURE_SEPARATORS
    return title[: last.start()].strip() if names_site or is_sure else title


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
