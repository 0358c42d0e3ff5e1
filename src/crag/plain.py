"""Values as plain ones: text that UTF-8 can write, JSON, addresses to show, counts in words."""

import math
import os
import re
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from pydantic import ValidationError

_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]++:/{1,2})"
    r"(?:[^\s/?#@'\"]*@|[^\s/?#:@'\"]*:(?!\d*[/?#])[^\s@'\"]{0,200}@)*+"
    r"([^\s?#'\"<>]*+)(\?[^\s#'\"<>]*+)?",
    re.IGNORECASE,
)
_VALUE = re.compile(r"=[^&;]*|(?<=[?&;])[^=&;]+(?=[&;]|$)")


def well_formed(text: str) -> str:
    """Return `text` with each pair of surrogates joined; half of one, and NUL, becomes U+FFFD.

    JSON from outside may hold half a pair, where an emoji was cut in two. No file, terminal,
    database or tokenizer takes it. PDFs hold NUL, which PostgreSQL refuses.
    """
    text = str.__str__(text).replace("\0", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain_json(value: Any) -> Any:
    """Return a value as JSON types, with well-formed texts.

    A number that is not finite becomes None, and anything else what it says of itself.
    """
    match value:
        case None | bool():
            return value
        case Integral():
            return int(value)
        case Real():
            return float(value) if math.isfinite(value) else None
        case Mapping():
            return {said(key): plain_json(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain_json(inner) for inner in value]
        case _:
            return said(value)


def real_path(path: str | Path) -> Path:
    """Return where a path leads; links that lead in a circle, and `~` of nobody, stay as named."""
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 - that of Path raises


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, such as "1 question" or "1,200 questions"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, most: int) -> str:
    """Return the text on one line, truncated to `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def said(value: object) -> str:
    """Return `str(value)`, well-formed, or the name of the type where that raises."""
    try:
        return well_formed(value if isinstance(value, str) else str(value))
    except Exception:  # noqa: BLE001 - whatever the `__str__` of others raises
        return f"<{type(value).__name__} that cannot be shown>"


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or else the name of its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def first_problem(error: ValidationError) -> tuple[str, object, str]:
    """Return the first field that is wrong, its value, and what is wrong; "" stands for all."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return field, first["input"], first["msg"].removeprefix("Value error, ")


def problem_of(error: ValidationError, whole: str = "the body") -> str:
    """Return what is wrong with which field, without what was sent; `whole` stands for all."""
    field, _, problem = first_problem(error)
    return f"{field or whole}: {problem}"


def without_credentials(text: str, *, queries: bool = True) -> str:
    """Return a text whose addresses, such as ``https://host/path?key=…``, hold no secrets.

    A user, a password and, unless `queries` are kept, what a query gives its parameters are taken
    out; the rest is not changed.
    """

    def shown(found: re.Match[str]) -> str:
        query = found[3] or ""
        return found[1] + found[2] + (_VALUE.sub(_hidden, query) if queries else query)

    return _ADDRESS.sub(shown, text)


def _hidden(value: re.Match[str]) -> str:
    return "=…" if value[0].startswith("=") else "…"
