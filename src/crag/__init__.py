"""Corrective RAG: retrieval that is graded, and repaired before the model answers.

Start with `crag.open(".crag/docs").ask("…")`, or with `crag.graph.build_crag` for a graph of your
own; what a graph is built from stands in `crag.parts`, what can be changed for each run in
`crag.settings`. Importing this package loads no model library.
"""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from crag.asking.front_door import Answer, OpenDocuments, Step, Token
    from crag.parts import Parts
    from crag.settings import Settings
    from crag.settings_dict import SettingsDict

logging.getLogger(__name__).addHandler(logging.NullHandler())

__version__ = "0.1.0"
__all__ = ["Answer", "OpenDocuments", "Step", "Token", "open"]


def open(  # noqa: A001 - as in `crag.open`, like that of gzip or tarfile
    location: "str | Path | None" = None,
    *,
    method: str = "crag",
    settings: "Settings | SettingsDict | None" = None,
    parts: "Parts | None" = None,
) -> "OpenDocuments":
    """Open an index, or parts of your own, to ask it: see `crag.asking.front_door`.

    Raises:
        CragError: there is no index, both an index and parts are given, or a part cannot be used.
        SettingsError: a setting or the method is unknown, or a value is out of range.
    """
    from crag.asking.front_door import open_documents

    return open_documents(location, method=method, settings=settings, parts=parts)


def __getattr__(name: str) -> Any:
    """Load what `open` returns when it is named, so that importing the package stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crag.asking import front_door

    return getattr(front_door, name)
