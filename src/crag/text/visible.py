"""The part of an HTML page that its readers see, as a tree.

Scripts, styles, comments and elements that an attribute or inline style hides are left out: hidden
text is where instructions to language models are put. What style sheets hide is not recognised, nor
is text in the colour of its background.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from crag.errors import ContentError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DEEPEST = 200
"""Elements within each other; the text of what lies deeper joins the element at that depth."""
MOST_ELEMENTS = 12_000
"""What follows them on a page of the web is not read."""
PLACE = "data-crag-place"
"""Attribute with the first and last line that an element comes from, where Markdown became HTML."""
_LONGEST_ATTRIBUTE = 2_000
_RUNAWAY = 3_000
"""Where elements nest deeper, reading stops: the parser would need minutes for it."""
_STEP = 65_536
"""Bytes fed to the parser at once; between two steps reading can stop."""
_UNSEEN = re.compile(
    "script|style|template|noscript|noframes|noembed|svg|math|iframe|object|applet|canvas|audio|"
    "video|select|textarea|datalist"
)
_KEPT_ATTRIBUTE = re.compile(
    "class|id|role|itemprop|itemtype|property|name|content|rel|href|lang|colspan|rowspan|start|"
    f"value|alt|aria-expanded|{PLACE}"
)
_NAME = re.compile(r"[a-z][a-z0-9]*")
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

    Of a large page the tree holds the beginning, unless the `whole` page is asked for.

    Raises:
        ContentError: the whole page is asked for, and its elements nest too deep to be read.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    builder = _Builder()
    parser = etree.HTMLParser(target=builder, encoding="utf-8")
    data = text.replace("\0", " ").encode("utf-8", "replace")
    for start in range(0, len(data), _STEP):
        parser.feed(data[start : start + _STEP])
        if builder.nests_too_deep or (not whole and builder.elements > MOST_ELEMENTS):
            break
    with suppress(etree.XMLSyntaxError):  # The parser's word for a page without any element.
        parser.close()
    if whole and builder.nests_too_deep:
        raise ContentError(f"its elements nest deeper than {_RUNAWAY:,} levels: save it as text")
    tree = builder.finish()
    for element in () if whole else list(tree.iter())[MOST_ELEMENTS:]:
        element.getparent().remove(element)
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


class _Builder:
    """Receives the parser's events and builds the tree."""

    def __init__(self) -> None:
        from lxml import (
            etree,  # pyright: ignore[reportAttributeAccessIssue] - compiled
            html,
        )

        self._tree = etree.TreeBuilder(parser=html.HTMLParser())
        self._tree.start("html", {})
        self._open: list[str | None] = ["html"]
        """The elements around: empty for one that is left out but for its text, None if hidden."""
        self._depth = self.elements = 0
        self.nests_too_deep = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open an element."""
        has_room = self._depth < DEEPEST and tag != "html" and _NAME.fullmatch(tag) is not None
        hidden = self._open[-1] is None or is_hidden(tag, attributes)
        self._open.append(None if hidden else tag * has_room)
        self.elements += 1
        self.nests_too_deep |= len(self._open) > _RUNAWAY
        if self._open[-1]:
            self._depth += 1
            self._tree.start(tag, _kept(attributes))

    def end(self, _tag: str) -> None:
        """Close the element opened last."""
        if len(self._open) > 1 and (tag := self._open.pop()):
            self._depth -= 1
            self._tree.end(tag)

    def data(self, text: str) -> None:
        """Add text to the element opened last."""
        if self._open[-1] is not None:
            self._tree.data(_INVALID.sub(" ", text))

    def close(self) -> None:
        """Do nothing: `finish` returns the tree, also where a page broke off."""

    def finish(self) -> "HtmlElement":
        """Close what is open and return the root."""
        while len(self._open) > 1:
            self.end("")
        self._tree.end("html")
        return self._tree.close()


def _kept(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that are read: a hostile element has thousands."""
    return {
        name: _INVALID.sub(" ", value)
        for name, value in attributes.items()
        if _KEPT_ATTRIBUTE.fullmatch(name) and len(value) <= _LONGEST_ATTRIBUTE
    }
