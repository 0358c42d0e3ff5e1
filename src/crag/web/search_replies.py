"""Parse the replies of search services defensively."""

import html
import re
from collections.abc import Mapping
from typing import Any

_INLINE = "a|abbr|b|bdi|cite|code|em|font|i|mark|q|s|small|span|strong|sub|sup|tt|u|wbr"
_BLOCK = (
    "blockquote|body|br|dd|div|dl|dt|h[1-6]|head|hr|html|iframe|img|li|link|meta|ol|p|pre|script"
    "|style|table|tbody|td|th|thead|title|tr|ul"
)
_TAG = re.compile(rf"</?(?:({_INLINE})|{_BLOCK})(?:[\s/][^<>]*)?>|<!--|-->", re.IGNORECASE)
_LONGEST = 20_000


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; null is an empty list, and other items are skipped.

    Raises:
        TypeError: it is not a list.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {type(value).__name__}")
    return [item for item in value if isinstance(item, Mapping)]


def text(value: object) -> str:
    """Return a text unchanged, and an empty one for null or any other type."""
    return value if isinstance(value, str) else ""


def plain(value: object) -> str:
    """Return a text on one line without HTML tags and entities; other types give an empty text.

    Only names of HTML elements count as tags, so `List<int>` is kept.
    """
    stripped = _TAG.sub(lambda tag: "" if tag[1] else " ", text(value)[:_LONGEST])
    return " ".join(html.unescape(stripped).split())
