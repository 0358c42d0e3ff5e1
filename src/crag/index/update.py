"""Bring the index up to date: compare files with it, write changes, remove deleted files."""

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import LOADERS, Found, find_files
from crag.documents.sources import Loaded, Loader, SourceText, Unusable, file_of
from crag.errors import IndexNotFoundError, SourceError
from crag.index.store import DocumentIndex, Entry
from crag.plain import real_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = 256
"""Chunks that are embedded and written together."""

Progress = Callable[[int, int, str], object]
"""Receives the number of files that were read, of how many, and the document that is next."""


def quiet(_done: int, _total: int, _source: str) -> None:
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
    skipped: tuple[Unusable, ...] = ()
    """Sources that were not indexed, and why."""
    unsupported: tuple[str, ...] = ()
    """Files in the folders with an unsupported format."""
    seconds: float = 0.0


class FromFile(NamedTuple):
    """A document as it was read, perhaps with what was made of it elsewhere."""

    file: Path
    root: str
    """The path that it was found under."""
    loaded: Loaded
    chunks: list[Document] | None = None
    vectors: "Sequence[NDArray[np.float32]]" = ()
    """One for each chunk, where they were embedded elsewhere."""


Held = Mapping[str, str]
"""By source, the hash of the content that the index holds."""
Reader = Callable[[Found, Held], Generator[FromFile]]
"""Reads all files in their order; what the index holds need not be split and embedded."""


def reader_within(limits: Limits | None = None) -> Reader:
    """Return what reads all files in a process of their own, one after the other, within limits."""

    def read(found: Found, _: Held) -> Generator[FromFile]:
        with IsolatedReader(limits) as files:
            for file, root in found.files.items():
                for loaded in files.read(file, found.loaders):
                    yield FromFile(file, str(root), loaded)

    return read


def index_paths(  # noqa: PLR0913 - what a run can be told
    paths: Sequence[str | Path],
    index: DocumentIndex,
    *,
    progress: Progress = quiet,
    remove: bool = False,
    loaders: Mapping[str, Loader] = LOADERS,
    reader: Reader | None = None,
) -> IndexReport:
    """Index files and folders, or remove them from the index.

    Unchanged documents are not embedded again. A document leaves the index when its file, or its
    record, is gone from a path that was indexed before. With `remove`, all of the paths leave,
    whether they still exist or not. `loaders` read files by suffix:
    `crag.documents.loaders.loaders_with` adds to them. The default `reader`,
    `reader_within(Limits())`, reads in a process of its own; what exceeds its limits is skipped. A
    `reader` of your own may read, split and embed elsewhere.

    Raises:
        DocumentIndexError: a path does not exist, a folder or all paths hold no supported file, or
            the index cannot be written.
    """
    started = time.monotonic()
    targets = list(dict.fromkeys(map(real_path, paths)))
    if remove:
        report = _removed(targets, index)
    else:
        found = find_files(targets, loaders)
        with index.writing():
            report = _Update(index, found, targets, progress).run(reader or reader_within())
    return replace(report, seconds=time.monotonic() - started)


def replace_file(
    staged: Path, file: Path, index: DocumentIndex, limits: Limits | None = None
) -> IndexReport:
    """Read `staged`, then move it to `file`, and index it in the place of what was there.

    Both must be in one file system; the folder of `staged` is the caller's to remove.

    Raises:
        SourceError: it, or a record of it, cannot be read, or it holds no text.
        DocumentIndexError: the index cannot be written, or another run is writing.
        OSError: the file cannot be replaced.
    """
    documents: list[FromFile] = []
    with IsolatedReader(limits) as reader:
        for loaded in reader.read(staged):
            if isinstance(loaded, SourceText):
                source = f"{file}{loaded.source.removeprefix(str(staged))}"
                documents.append(FromFile(file, str(file), replace(loaded, source=source)))
            elif not loaded.empty:
                raise SourceError(file.name, loaded.reason)
    if not documents:
        raise SourceError(file.name, "empty")
    with index.writing():
        staged.replace(file)
        update = _Update(index, Found(files={file: file}), [file], quiet)
        return update.run(lambda *_: (one for one in documents))


def _removed(targets: list[Path], index: DocumentIndex) -> IndexReport:
    if not index.exists():
        raise IndexNotFoundError(index.location)
    with index.writing():
        going = index.entries(targets).values()
        index.write(removed=[identifier for entry in going for identifier in entry.ids])
    return IndexReport(removed=len(going))


class _Update:
    """The run that brings an index up to date with the files found under `roots`.

    The index itself is the only record of its content, so no second one can disagree.
    """

    def __init__(
        self, index: DocumentIndex, found: Found, roots: Sequence[Path], progress: Progress
    ) -> None:
        self._index, self._found, self._progress = index, found, progress
        self._entries = index.entries(roots)
        self._chunks, self._vectors = list[Document](), list[Any]()
        """What is written together, with what goes then."""
        self._removed = list[str]()
        self._skipped = list(found.refused)
        self._unread: set[str] = set()
        """Sources that could not be read, which keep what the index has of them."""
        self._present: set[str] = set()
        """The sources that were read."""
        self._counts: Counter[str] = Counter()
        """By the fields of the report."""

    def run(self, reader: Reader) -> IndexReport:
        """Run, and return the report."""
        files = list(self._found.files)
        numbers = {file: number for number, file in enumerate(files)}
        held = {source: entry.content_hash for source, entry in self._entries.items()}
        with closing(reader(self._found, held)) as documents:
            for one in documents:
                self._progress(numbers[one.file], len(files), one.loaded.source)
                self._take(one)
                if len(self._chunks) >= WINDOW:
                    self._flush()
        gone = [entry for source, entry in self._entries.items() if self._is_gone(source, entry)]
        self._counts["removed"] += len(gone)
        self._removed += [identifier for entry in gone for identifier in entry.ids]
        self._flush()
        self._progress(len(files), len(files), "")
        unsupported = tuple(map(str, self._found.unsupported))
        return IndexReport(**self._counts, skipped=tuple(self._skipped), unsupported=unsupported)

    def _take(self, document: FromFile) -> None:
        loaded = document.loaded
        if not isinstance(loaded, SourceText):
            self._skipped.append(loaded)
            if not loaded.empty:
                self._unread |= {loaded.source, str(document.file)}
            return
        self._present.add(loaded.source)
        entry = self._entries.get(loaded.source)
        if entry is not None and entry.content_hash == loaded.content_hash:
            self._counts["unchanged"] += 1
            return
        chunks = split(loaded, document.root) if document.chunks is None else document.chunks
        self._chunks += chunks
        self._vectors += document.vectors
        self._removed += entry.ids if entry else []
        self._counts["changed" if entry else "added"] += 1

    def _flush(self) -> None:
        self._index.write(self._chunks, self._vectors, self._removed)
        self._counts["chunks"] += len(self._chunks)
        self._chunks, self._vectors, self._removed = [], [], []

    def _is_gone(self, source: str, entry: Entry) -> bool:
        """Return whether a source was not read, though its file was, or has no file any more."""
        file = Path(file_of(source, entry.position))
        if source in self._present or not self._unread.isdisjoint({source, str(file)}):
            return False
        try:
            return file in self._found.files or not file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # It may not be looked at now.
            return False
