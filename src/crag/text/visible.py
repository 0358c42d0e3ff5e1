"""The part of an HTML page that its readers see, as a tree.

Scripts, styles, comments and elements that an attribute or inline style hides are left out: hidden
text is where instructions to language models are put. What style sheets hide is not recognised.
"""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from crag.errors import ContentError
from crag.text.styles import Colour, background_of, colour_of, declarations, hides, is_lost

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DEEPEST = 200
"""Elements within each other; the text of what lies deeper joins the element at that depth."""
MOST_ELEMENTS = 12_000
"""What follows them on a page of the web is not read."""
MOST_CHARACTERS = 1_000_000
"""As above."""
_LONGEST_ATTRIBUTE = 200
_LONGEST_URL = 2_000
_RUNAWAY = 3_000
"""Where elements nest deeper, reading stops: the parser would need minutes for it."""
_STEP = 65_536
"""Bytes fed to the parser at once; between two steps reading can stop."""
_UNSEEN = re.compile(
    "script|style|template|noscript|noframes|noembed|svg|math|iframe|object|applet|canvas|audio|"
    "video|select|textarea|datalist"
)
_KEPT_ATTRIBUTE = re.compile(
    "class|id|role|itemprop|itemtype|property|name|content|rel|lang|colspan|rowspan|start|aria-expanded"
)
_NAME = re.compile(r"[a-z][a-z0-9]*")
_INVALID = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010fffd]"
)


class _Open(NamedTuple):
    """An open element, and what it passes on to those within it."""

    tag: str
    built: bool
    hidden: bool
    colour: Colour | None
    background: Colour | None


def visible_tree(text: str, *, whole: bool = False) -> "HtmlElement":
    """Return the root, `html`, of the visible elements of a page; any text has one.

    Of a large page the tree holds the beginning, unless the `whole` page is asked for.

    Raises:
        ContentError: the whole page is asked for, and its elements nest too deep to be read.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    builder = _Builder(is_bounded=not whole)
    parser = etree.HTMLParser(target=builder, encoding="utf-8")
    data = text.replace("\0", " ").encode("utf-8", "replace")
    for start in range(0, len(data), _STEP):
        parser.feed(data[start : start + _STEP])
        if builder.is_full:
            break
    with suppress(etree.XMLSyntaxError):  # The parser's word for a page without any element.
        parser.close()
    if whole and builder.nests_too_deep:
        raise ContentError(f"its elements nest deeper than {_RUNAWAY:,} levels: save it as text")
    return builder.finish()


class _Builder:
    """Receives the parser's events and builds the tree."""

    def __init__(self, *, is_bounded: bool) -> None:
        from lxml import (
            etree,  # pyright: ignore[reportAttributeAccessIssue] - compiled
            html,
        )

        self._tree = etree.TreeBuilder(parser=html.HTMLParser())
        self._tree.start("html", {})
        self._open = [_Open("html", built=True, hidden=False, colour=None, background=None)]
        self._depth, self._elements, self._characters = 1, 0, 0
        self.nests_too_deep = False
        self._most_elements = MOST_ELEMENTS if is_bounded else sys.maxsize
        self._most_characters = MOST_CHARACTERS if is_bounded else sys.maxsize

    @property
    def is_full(self) -> bool:
        """Whether the rest of the page is to be left unread."""
        return (
            self._elements >= self._most_elements
            or self._characters >= self._most_characters
            or self.nests_too_deep
        )

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open an element."""
        around, style = self._open[-1], declarations(attributes.get("style", ""))
        hidden = around.hidden or bool(_UNSEEN.fullmatch(tag)) or hides(attributes, style)
        hidden = hidden or (tag == "dialog" and "open" not in attributes)
        built = not hidden and tag != "html" and self._has_room(tag)
        colour = colour_of(attributes, style) or around.colour
        background = background_of(attributes, style) or around.background
        self._open.append(_Open(tag, built, hidden, colour, background))
        self._elements += 1
        self.nests_too_deep |= len(self._open) > _RUNAWAY
        if built:
            self._depth += 1
            self._tree.start(tag, _kept(tag, attributes))

    def end(self, _tag: str) -> None:
        """Close the element opened last."""
        if len(self._open) == 1:
            return
        closed = self._open.pop()
        if closed.built:
            self._depth -= 1
            self._tree.end(closed.tag)

    def data(self, text: str) -> None:
        """Add text to the element opened last."""
        around = self._open[-1]
        if not around.hidden and not self.is_full and not is_lost(around.colour, around.background):
            self._characters += len(text)
            self._tree.data(_INVALID.sub(" ", text))

    def close(self) -> None:
        """Do nothing: `finish` returns the tree, also where a page broke off."""

    def finish(self) -> "HtmlElement":
        """Close what is open and return the root."""
        while len(self._open) > 1:
            self.end("")
        self._tree.end("html")
        return self._tree.close()

    def _has_room(self, tag: str) -> bool:
        return bool(self._depth < DEEPEST and not self.is_full and _NAME.fullmatch(tag))


def _kept(tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: _INVALID.sub(" ", value[:_LONGEST_ATTRIBUTE])
        for name, value in attributes.items()
        if _KEPT_ATTRIBUTE.fullmatch(name)
    }
    if tag == "link" and len(url := attributes.get("href", "")) <= _LONGEST_URL:
        kept["href"] = _INVALID.sub(" ", url)
    elif tag == "a" and (url := attributes.get("href", "")).startswith("#"):
        kept["href"] = _INVALID.sub(" ", url[:_LONGEST_ATTRIBUTE])
    return kept
