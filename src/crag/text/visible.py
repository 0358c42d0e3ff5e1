"""The part of an HTML page that its readers see, as a tree.

Scripts, styles, comments and elements that an attribute or inline style hides are left out: hidden
text is where instructions to language models are put. What style sheets hide is not recognised, nor
is text in the colour of its background.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from crag.errors import ContentError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MOST_ELEMENTS = 12_000
"""What follows them on a page of the web is not read."""
PLACE = "data-crag-place"
"""Attribute with the first and last line that an element comes from, where Markdown became HTML."""
_UNSEEN = re.compile(
    "script|style|template|noscript|noframes|noembed|svg|math|iframe|object|applet|canvas|audio|"
    "video|select|textarea|datalist"
)
_INVALID = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010fffd]"
)
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?", re.IGNORECASE)
_NOTHING = r"[01]?(?:\.\d*)?(?:px|pt)?|0(?:\.0*)?[a-z%]*"
_HIDING: Mapping[str, re.Pattern[str]] = {
    "display": re.compile("none"),
    "visibility": re.compile("hidden|collapse"),
    "content-visibility": re.compile("hidden"),
    "opacity": re.compile(r"0*(?:\.0*)?|0*\.0[0-4]\d*|[0-4](?:\.\d*)?%"),
    "font-size": re.compile(rf"{_NOTHING}|0?\.0\d*r?em"),
    **dict.fromkeys(("left", "top", "right", "text-indent", "margin-left", "margin-top"),
                    re.compile(r"-(?:9\d\d|\d{4,})(?:\.\d+)?(?:px|pt)?|-\d{3,}r?em")),
    "clip": re.compile(r"rect\((?:[01](?:px)?[\s,]*){4}\)"),
    "clip-path": re.compile(r"inset\((?:5\d|[6-9]\d|100)%.*|circle\(0.*"),
    "transform": re.compile(r".*scale[xy]?\(\s*+0*+(?:\.0*+)?\s*+[,)].*"),
}  # fmt: skip
"""By property, the values with which nobody sees an element."""
_NO_SIZE = re.compile(_NOTHING)


def visible_tree(text: str, *, whole: bool = False) -> "HtmlElement":
    """Return the root, `html`, of the visible elements of a page; any text has one.

    The parser stops where elements nest deeper than 256 levels. Of a large page the tree holds the
    beginning, unless the `whole` page is asked for.

    Raises:
        ContentError: the whole page is asked for, and its elements nest too deep to be read.
    """
    from lxml import html

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    page = f"<html>{_INVALID.sub(' ', text)}"
    tree = html.document_fromstring(page.encode("utf-8", "replace"), parser)
    if whole and any("Excessive depth" in error.message for error in parser.error_log):
        raise ContentError("its elements nest too deep: save it as text")
    for element in () if whole else list(tree.iter())[MOST_ELEMENTS:]:
        element.getparent().remove(element)
    for element in list(tree.iter()):
        if is_hidden(element.tag, element.attrib):
            element.drop_tree()
    return tree


def is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element and all within it are kept from readers' eyes."""
    if _UNSEEN.fullmatch(tag) or "hidden" in attributes:
        return True
    if tag == "dialog" and "open" not in attributes:
        return True
    if attributes.get("aria-hidden", "").strip().lower() == "true":
        return True
    style = _style(attributes.get("style", ""))
    if any(name in _HIDING and _HIDING[name].fullmatch(value) for name, value in style.items()):
        return True
    sizes = (style.get(name, "") for name in ("height", "width", "max-height", "max-width"))
    is_clipped = style.get("overflow", "") in {"hidden", "clip"}
    return is_clipped and any(size and _NO_SIZE.fullmatch(size) for size in sizes)


def _style(written: str) -> dict[str, str]:
    """Read an inline style; names and values in lower case, of several values the last."""
    plain = _ESCAPE.sub(lambda match: chr(min(int(match[1], 16), 0x10FFFF)), written)
    pairs = (part.partition(":") for part in _COMMENT.sub(" ", plain).lower().split(";"))
    return {
        name.strip(): value.replace("!important", "").strip()
        for name, colon, value in pairs
        if colon and value.strip()
    }
