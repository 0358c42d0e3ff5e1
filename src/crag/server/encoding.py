"""JSON as LangGraph's API writes it: documents and messages as objects, sets as lists."""

import json
from collections.abc import Mapping

import orjson
from pydantic_core import to_jsonable_python

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
decoded = json.loads  # Other than orjson, it reads a half of a surrogate pair.


def encoded(value: object) -> str:
    """Return JSON; text that is no Unicode, such as a half of a surrogate pair, is escaped."""
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    match value:
        case BaseException():
            return {"error": type(value).__name__, "message": str(value)}
        case Mapping():
            return dict(value)
        case _:
            return to_jsonable_python(value, fallback=str, bytes_mode="base64")
