"""Title and main text of an HTML page."""

import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crag.text.visible import visible_tree

if TYPE_CHECKING:
    from lxml.etree import _Element
    from lxml.html import HtmlElement

_SEPARATOR = re.compile(r"\s+([|·•»:–—-]|::|//)\s+|\s*\|\s*")
_SURE_SEPARATORS = frozenset("|·•»")
_INLINE = re.compile(
    "a|abbr|b|bdi|bdo|cite|code|data|del|dfn|em|font|hi|i|ins|kbd|mark|ref|s|samp|small|span|strong|"
    "sub|sup|time|tt|u|var"
)
_FEWEST_LETTERS = 3
"""A title's first part is only kept alone if it has them."""


def read_html(text: str, url: str) -> tuple[str, list[str]]:
    """Return the title and the paragraphs of a page's main content, as its readers see it.

    Where trafilatura finds no main content, every `p` is taken, as the official code does. A list
    is one paragraph, and so is a table. Headings within the text are left out.
    """
    tree = visible_tree(text)
    title = _title(tree, url)
    paragraphs = _main_content(tree) or [_text(element) for element in tree.iter("p")]
    return title, paragraphs


def _main_content(tree: "HtmlElement") -> list[str]:
    import trafilatura

    logger = logging.getLogger("trafilatura")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # It reports each page without main content as an error.
    found = trafilatura.bare_extraction(
        tree, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
    )
    body = getattr(found, "body", None)
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


def _text(element: "_Element") -> str:
    """Join the text within an element; what is not inline, a line break too, stands apart."""
    from lxml.etree import iterwalk

    parts: list[str] = []
    for event, inner in iterwalk(element, events=("start", "end")):
        gap = "" if _INLINE.fullmatch(inner.tag) else " "
        parts += [gap, inner.text or ""] if event == "start" else [gap]
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
