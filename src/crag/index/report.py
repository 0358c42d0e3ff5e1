"""Progress and report of an indexing run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from crag.documents.sources import Skipped


class Progress(Protocol):
    """Called when documents are finished."""

    def __call__(self, done: int, total: int | None, source: str, /) -> None:
        """Receive the number of finished documents, and the total if known.

        `total` is an estimate if cells of a CSV file contain line breaks; it is exact in the last
        call. `source` is the current document, empty at the end.
        """


def quiet(_done: int, _total: int | None, _source: str, /) -> None:
    """Show no progress."""


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """The result of a run; every document counts once in `added`, `changed` or `unchanged`."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    """Documents that no longer exist."""
    chunks: int = 0
    """Chunks embedded and written."""
    skipped: tuple[Skipped, ...] = ()
    """Sources that were not indexed, and why."""
    unsupported: tuple[str, ...] = ()
    """Files in the folders with an unsupported format."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """Added and changed documents in a language that the embedding model does not read, by ISO
    639-1 code, most first; code and very short texts do not count."""
    language_warning: str = ""
    """Set if these are at least one in a hundred documents."""
    seconds: float = 0.0

    def finished(self, started: float) -> Self:
        """Return the report with the time since `started`, a value of `time.monotonic`."""
        return replace(self, seconds=time.monotonic() - started)
