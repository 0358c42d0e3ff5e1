"""What the API replies: values as the JSON of LangGraph's API, or why a request is refused."""

import json
from collections.abc import Mapping
from math import ceil
from typing import NoReturn

import orjson
from pydantic_core import to_jsonable_python
from starlette.exceptions import HTTPException

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
decoded = json.loads  # Other than orjson, it reads a half of a surrogate pair.


class RefusedRequestError(HTTPException):
    """A request that cannot be served as it is: the status, what is wrong, when to try again."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        headers = {"Retry-After": str(ceil(retry_after))} if retry_after else None
        super().__init__(status, detail, headers)


def not_found(what: str) -> NoReturn:
    """Refuse: it does not exist, or belongs to somebody else."""
    raise RefusedRequestError(404, f"{what} not found.")


def encoded(value: object) -> str:
    """Return JSON, with documents and messages as objects, and sets as lists.

    Text that is no Unicode, such as a half of a surrogate pair, is escaped.
    """
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")
