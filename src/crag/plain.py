"""Values as plain ones: text that UTF-8 can write, JSON, addresses to show, counts in words."""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, time
from numbers import Integral, Real
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

Form = TypeVar("Form", bound=BaseModel)
WIDEST = 2**53
"""Integers beyond this are not the same everywhere: JavaScript rounds them."""
_DEEPEST = 20
_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]++:/{1,2})"
    r"(?:[^\s/?#@'\"]*@|[^\s/?#:@'\"]*:(?!\d*[/?#])[^\s@'\"]{0,200}@)*+"
    r"([^\s?#'\"<>]*+)(\?[^\s#'\"<>]*+)?",
    re.IGNORECASE,
)
_VALUE = re.compile(r"=[^&;]*|(?<=[?&;])[^=&;]+(?=[&;]|$)")
_STORED = (date, time, UUID)
"""What LangGraph stores as it is; a `datetime` is a `date`."""
_ALLOWED = {
    "int": "write a whole number",
    "float": "write a number",
    "finite": "write a number",
    "bool": "write true or false",
    "date": "write a day as 2026-01-31",
    "string": "write a text",
    "model": "write names and their values",
    "list": "write a list",
    "missing": "it is missing",
    "extra_forbidden": "there is nothing of this name",
    "too_short": "it must hold at least {min_length}",
    "literal_error": "choose {expected}",
    "greater_than": "it must be above {gt:,}",
    "greater_than_equal": "it must be at least {ge:,}",
    "less_than": "it must be below {lt:,}",
    "less_than_equal": "it must be at most {le:,}",
    "value_error": "{error}",
}
"""What a value may be, by pydantic's type of an error or the first word of it."""


def well_formed(text: str) -> str:
    """Return `text` with each pair of surrogates joined; half of one, and NUL, becomes U+FFFD.

    JSON from outside may hold half a pair, where an emoji was cut in two. No file, terminal,
    database or tokenizer takes it. PDFs hold NUL, which PostgreSQL refuses. What a subclass of
    `str` makes of itself does not count.
    """
    text = str.__str__(text).replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def all_well_formed(value: Any) -> Any:
    """Return a value with all its texts well-formed: in lists, tuples and mappings, keys too."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, tuple):
        members = map(all_well_formed, value)
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return [all_well_formed(member) for member in value]
    if isinstance(value, Mapping):
        return {all_well_formed(key): all_well_formed(member) for key, member in value.items()}
    return value


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


def filled(form: type[Form], reply: str) -> Form | None:
    """Read the first JSON object of a model's reply that fills in the form; None if there is none.

    The thoughts of a reasoning model are ignored, and so are fences and text around the object.
    """
    text = reply.rpartition("</think>")[2]
    for start in (place for place, character in enumerate(text) if character == "{"):
        with suppress(ValueError, RecursionError):
            return form.model_validate(json.JSONDecoder().raw_decode(text, start)[0])
    return None


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or else the name of its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def problems(error: ValidationError, whole: str = "the body", most: int = 1) -> str:
    """Return what is wrong with which field, without the rest of what was sent.

    `whole` is the name of what has no field that is wrong.
    """
    found = error.errors(include_url=False, include_input=False)[:most]
    fields = [".".join(map(str, problem["loc"])) or whole for problem in found]
    return "; ".join(
        f"{field}: {problem['msg']}" for field, problem in zip(fields, found, strict=True)
    )


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


def plain_json(value: object, depth: int = 0) -> object:
    """Return a value as JSON types, with days, times and UUIDs as they are.

    A number that is not finite becomes None, and anything else what it says of itself.
    """
    if isinstance(value, str):
        return well_formed(value)
    if value is None or isinstance(value, (bool, *_STORED)):
        return value
    if isinstance(value, Real):
        return _number(value)
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {said(key): plain_json(inner, depth + 1) for key, inner in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return [plain_json(inner, depth + 1) for inner in value]
    return said(value)


def _number(value: Real) -> int | float | str | None:
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) <= WIDEST else said(value)
    return float(value) if math.isfinite(value) else None


def allowed_by(problem: Mapping[str, Any]) -> str:
    """Say what a value may be, for one of the errors that pydantic lists."""
    kind = str(problem["type"])
    words = _ALLOWED.get(kind) or _ALLOWED.get(kind.partition("_")[0], "it is of the wrong kind")
    return words.format_map(problem.get("ctx") or {})
