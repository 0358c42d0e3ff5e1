"""The statements of the server: `queries/` has a file for each module that runs them.

They stand in files of their own, as those that make the tables do: editors colour and check them,
and a comment says why beside the line that it is about.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def queries(module: str) -> Mapping[str, LiteralString]:
    """Return the statements of a file by name; each goes from `-- name: …` to the next of these."""
    text = files("crag.server").joinpath("queries", f"{module}.sql").read_text("utf-8")
    _, *found = _NAME.split(text)
    named = dict(zip(found[::2], found[1::2], strict=True))
    # psycopg takes constants alone: these are, as no part of them comes from outside.
    return cast("Mapping[str, LiteralString]", named)
