"""What an indexing run tells while it works and when it has finished."""

import time
from dataclasses import dataclass, replace
from typing import Protocol, Self

from crag.retrieval.documents import Skipped


class Progress(Protocol):
    """Called as documents are finished."""

    def __call__(self, done: int, total: int | None, source: str, /) -> None:
        """Take the number of documents done, and of all if known.

        `total` is an estimate where cells of a CSV file hold line breaks; the last call has it
        right. `source` is the document being worked on, empty at the end.
        """


def quiet(_done: int, _total: int | None, _source: str, /) -> None:
    """Show no progress."""


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """What a run did; every document counts once in `added`, `changed` or `unchanged`."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    """Documents that are no longer there."""
    chunks: int = 0
    """Chunks embedded and written."""
    skipped: tuple[Skipped, ...] = ()
    """Sources that were not indexed, and why."""
    unsupported: tuple[str, ...] = ()
    """Files in the folders whose format is not known."""
    seconds: float = 0.0

    def finished(self, started: float) -> Self:
        """Return the report with the time since `started`, a value of `time.monotonic`."""
        return replace(self, seconds=time.monotonic() - started)
