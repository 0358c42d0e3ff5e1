"""What stores and finds chunks: the Protocol of a back end, and filters by metadata."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, get_args

from langchain_core.documents import Document

from crag.errors import SettingsError
from crag.finding import FindBy
from crag.plain import without_credentials

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 1
"""Version of the stored format of a chunk."""


class Stamp(NamedTuple):
    """What an index was created with."""

    schema: int
    embeddings: str
    """Name of the embedding model."""
    dimension: int
    """Length of its vectors."""


class Filter(NamedTuple):
    """Which chunks to search; an empty field lets all pass."""

    folder: str = ""
    """An absolute path, of a folder or a file; or the end or middle of one, such as ``api/v2``."""
    kind: str = ""
    """The metadata `kind` of a chunk."""
    since: str = ""
    """First day on which the file was modified, as ``2026-01-31``."""
    until: str = ""
    """Last day."""

    @property
    def by_source(self) -> bool:
        """Whether it says something about files, rather than about chunks."""
        return bool(self.folder or self.since or self.until)

    def patterns(self) -> tuple[str, ...]:
        r"""Return the patterns of SQL's LIKE, with the escape ``\``, that a source matches."""
        path = PurePath(self.folder).as_posix().strip("/")
        escaped = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        start = "/" if PurePath(self.folder).is_absolute() else "%/"
        return tuple(f"{start}{escaped}{end}" for end in ("", "/%", "#%"))

    def comparisons(self) -> list[tuple[str, str, str]]:
        """Return which metadata of a chunk are compared, by which operator of SQL, with what."""
        comparisons = [("kind", "=", self.kind)]
        comparisons += [("modified", ">=", self.since), ("modified", "<=", self.until)]
        return [comparison for comparison in comparisons if comparison[2]]


EVERYTHING = Filter()


def filter_of(
    folder: object = None, kind: object = None, since: object = None, until: object = None
) -> Filter:
    """Return the filter for the values of settings; None and "" let all pass.

    Raises:
        SettingsError: a day is not a date.
    """
    return Filter(str(folder or ""), str(kind or ""), _day("since", since), _day("until", until))


def _day(name: str, value: object) -> str:
    if not value:
        return ""
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise SettingsError(name, value, "write a day as 2026-01-31") from None


def checked_way(by: str) -> FindBy:
    """Return a way of finding chunks.

    Raises:
        SettingsError: there is no such way.
    """
    if by not in get_args(FindBy):
        raise SettingsError("find_by", by, f"allowed are {', '.join(get_args(FindBy))}")
    return cast("FindBy", by)


def in_order(ids: Sequence[str], chunks: Iterable[Document]) -> list[Document]:
    """Return the chunks with these ids, in their order; ids without a chunk are left out."""
    by_id = {chunk.id: chunk for chunk in chunks}
    return [by_id[identifier] for identifier in ids if identifier in by_id]


def sentence_of(error: Exception) -> str:
    """Return what an error says, on one line, with the full stop of a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."


def safe_location(location: str) -> str:
    """Return a location as it may be shown: a URL without user, password and parameters."""
    return without_credentials(location).partition("?")[0] if "://" in location else location


class Index(Protocol):
    """Stores chunks with their vectors, and finds them by vector and by words.

    An instance belongs to one location. It opens on first use, and again after `close`. Every write
    is atomic and durable when the method returns, and a killed process leaves an index that opens.
    Methods that read are called from several threads at once. Chunks are identified by their id,
    which changes with their text.

    Raises:
        DocumentIndexError: from every method, if the index cannot be used.
    """

    @property
    def location(self) -> str:
        """The location as it may be shown: without secrets."""
        ...

    @property
    def most(self) -> int:
        """The number of chunks that `add` and `remove` take at once."""
        ...

    def stamp(self) -> Stamp | None:
        """Return what the index was created with, or None if there is none; creates nothing."""
        ...

    def create(self, stamp: Stamp) -> None:
        """Create the index; only called within `writing`, when there is none."""
        ...

    def count(self) -> int:
        """Return the number of chunks."""
        ...

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk."""
        ...

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return the chunks with these ids, in their order; unknown ids are left out."""
        ...

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the `k` chunks nearest by cosine, nearest first."""
        ...

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the `k` chunks that share the rarest words, best first."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Keep other runs from writing, repair what a killed one left, and save at the end.

        Raises:
            DocumentIndexError: another run is writing.
        """
        ...

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Store at most `most` chunks in one write; one with a known id replaces the old one."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Remove chunks, at most `most`; unknown ids are ignored."""
        ...

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change metadata of chunks by id, at most `most`."""
        ...

    def close(self) -> None:
        """Close the index; it reopens on use."""
        ...
