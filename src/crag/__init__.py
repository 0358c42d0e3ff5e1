"""Corrective RAG: retrieval that is graded, and repaired before the model answers.

Start with `crag.open(".crag/docs").ask("…")`, or with `crag.graph.build_crag` for a graph of your
own; what a graph is built from stands in `crag.parts`, what can be changed for each run in
`crag.settings`. Importing this package loads no model library.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crag.api import Answer, OpenDocuments, Token
    from crag.api import open_documents as open  # noqa: A004 - as `gzip.open`

logging.getLogger(__name__).addHandler(logging.NullHandler())

__version__ = "0.1.0"
__all__ = ["Answer", "OpenDocuments", "Token", "open"]


def __getattr__(name: str) -> Any:
    """Load `crag.api` when something of it is used, so that importing the package stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("crag.api"), "open_documents" if name == "open" else name)
