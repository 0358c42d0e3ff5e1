"""Bring the index up to date: compare files with it, write changes, remove deleted files."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from langchain_core.documents import Document

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import LOADERS, Found, find_files
from crag.documents.sources import Loaded, Loader, Skipped, SourceText, file_of
from crag.errors import IndexNotFoundError, SourceError
from crag.index.contract import Change
from crag.index.store import DocumentIndex
from crag.index.writer import Entry, IndexWriter
from crag.text.language import LANGUAGES, unread_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = 1024
"""Chunks that are embedded and written together; sorted by length to save padding."""
_UNREAD_SHARE = 0.01
"""Of documents; fewer in other languages may be mistaken, such as one line full of names."""
_NAMED = 5

Progress = Callable[[int, int | None, str], object]
"""Receives the number of finished documents, their total, and the current one; empty at the end.

The total is an estimate if cells of a CSV file contain line breaks, and exact in the last call."""


def quiet(_done: int, _total: int | None, _source: str) -> None:
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
    seconds: float = 0.0

    def finished(self, started: float) -> Self:
        """Return the report with the time since `started`, a value of `time.monotonic`."""
        return replace(self, seconds=time.monotonic() - started)

    @property
    def language_warning(self) -> str:
        """What to tell if the model does not read at least one in a hundred documents, or empty."""
        unread, written = sum(self.languages.values()), self.added + self.changed
        if unread < max(1, written * _UNREAD_SHARE):
            return ""
        named = list(self.languages.items())[:_NAMED]
        found = ", ".join(f"{LANGUAGES[code]} {number}" for code, number in named)
        return (
            f"the embedding model does not read the language of {unread} of {written} documents "
            f"({found}): they are found by shared words more than by meaning. Name a multilingual "
            "model (CRAG_EMBEDDING_MODEL) and index into a new folder"
        )


class Made(NamedTuple):
    """What splitting, and perhaps embedding, made of a document."""

    chunks: list[Document]
    vectors: "NDArray[np.float32] | None" = None
    """One for each chunk, where they were embedded elsewhere."""


class FromFile(NamedTuple):
    """A document as it was read, perhaps with what was made of it elsewhere."""

    file: Path
    root: str
    """The path that it was found under."""
    loaded: Loaded
    made: Made | None = None


Held = Mapping[str, Collection[str]]
"""By source, the content hashes that the index holds with all their chunks."""
Reader = Callable[[Found, Held], Generator[FromFile]]
"""Reads all files in their order; what the index holds need not be split and embedded."""


def reader_within(limits: Limits | None = None) -> Reader:
    """Return what reads all files in a process of their own, one after the other, within limits."""

    def read(found: Found, _: Held) -> Generator[FromFile]:
        with IsolatedReader(limits) as files:
            for file, root in found.files.items():
                for loaded in files.read(file, loaders=found.loaders):
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
    `crag.documents.named_loaders.loaders_with` adds to them. The default `reader`,
    `reader_within(Limits())`, reads in a process of its own; what exceeds its limits is skipped. A
    `reader` of your own may read, split and embed elsewhere.

    Raises:
        DocumentIndexError: a path does not exist, a folder holds no supported file, or the index
            cannot be written.
    """
    started = time.monotonic()
    targets = list(dict.fromkeys(Path(path).expanduser().resolve() for path in paths))
    if remove:
        return _removed(targets, index).finished(started)
    found = find_files(targets, loaders)
    if not found.files:
        return IndexReport(skipped=tuple(found.refused)).finished(started)
    with index.writing() as writer:
        report = _Update(writer, found, targets, progress).run(reader or reader_within())
    return report.finished(started)


def replace_file(
    staged: Path, file: Path, index: DocumentIndex, limits: Limits | None = None
) -> IndexReport:
    """Move `staged` to `file`, and index it in the place of what was there: both, or neither.

    Both must be in one file system; the folder of `staged` is the caller's to remove.

    Raises:
        SourceError: it, or a record of it, cannot be read, or it holds no text.
        DocumentIndexError: the index cannot be written, or another run is writing.
        OSError: the file cannot be replaced.
    """
    started = time.monotonic()
    documents: list[FromFile] = []
    with IsolatedReader(limits) as reader:
        for loaded in reader.read(staged, name=file):
            if isinstance(loaded, SourceText):
                documents.append(FromFile(file, str(file), loaded))
            elif not loaded.empty:
                raise SourceError(file.name, loaded.reason)
    if not documents:
        raise SourceError(file.name, "empty")

    def read(_found: Found, _held: Held) -> Generator[FromFile]:
        yield from documents

    with index.writing() as writer, _replaced(staged, file):
        report = _Update(writer, Found(files={file: file}), [file], quiet).run(read)
    return report.finished(started)


@contextmanager
def _replaced(staged: Path, file: Path) -> Iterator[None]:
    """Replace a file at once, and put the old one back if the block fails."""
    before = staged.with_name(f".before-{file.name}")
    known = file.exists()
    if known:
        shutil.copy2(file, before)
    staged.replace(file)
    try:
        yield
    except BaseException:
        if known:
            before.replace(file)
        else:
            file.unlink(missing_ok=True)
        raise


def _removed(targets: list[Path], index: DocumentIndex) -> IndexReport:
    if not index.exists():
        raise IndexNotFoundError(index.location)
    with index.writing() as writer:
        going = [
            entry
            for source, entry in writer.entries(targets).items()
            if any(Path(file_of(source, entry.position)).is_relative_to(path) for path in targets)
        ]
        writer.write(Change(removed=[identifier for entry in going for identifier in entry.ids]))
    return IndexReport(removed=len(going))


class _Update:
    """The run that brings an index up to date with the files found under `roots`.

    The index itself is the only record of its content, so no second one can disagree.
    """

    def __init__(
        self, writer: IndexWriter, found: Found, roots: Sequence[Path], progress: Progress
    ) -> None:
        self._writer, self._found, self._roots = writer, found, roots
        self._progress, self._total = progress, found.documents()
        self._entries = writer.entries(roots)
        self._waiting: list[Made] = []
        """Documents that are written together, with what goes and changes then."""
        self._stale: list[str] = []
        self._amended: list[tuple[str, dict[str, str]]] = []
        self._skipped = list(found.refused)
        self._kept = {source for source, _ in found.refused if _leads_into(source, roots)}
        self._present: set[str] = set()
        """The sources that were read."""
        self._taken = 0
        """Documents that were read; all but those that wait are finished."""
        self._counts: Counter[str] = Counter()
        """By the fields of the report."""
        self._languages: Counter[str] = Counter()

    def run(self, reader: Reader) -> IndexReport:
        """Run, and return the report."""
        modified = {file: _day_of(file) for file in self._found.files}
        held = {source: (entry.content_hash,) for source, entry in self._entries.items()}
        with closing(reader(self._found, held)) as documents:
            for self._taken, document in enumerate(documents, start=1):
                self._take(document, modified[document.file])
                self._progress(
                    self._taken - len(self._waiting), self._total, document.loaded.source
                )
                if self._size() >= WINDOW:
                    self._flush()
        self._flush()
        self._remove_absent()
        self._progress(self._taken, self._taken, "")
        return IndexReport(
            **self._counts,
            languages=dict(self._languages.most_common()),
            skipped=tuple(self._skipped),
            unsupported=tuple(map(str, self._found.unsupported)),
        )

    def _size(self) -> int:
        return sum(len(made.chunks) for made in self._waiting)

    def _take(self, document: FromFile, modified: str) -> None:
        loaded = document.loaded
        if not isinstance(loaded, SourceText):
            if loaded.foreign:
                self._found.unsupported.append(Path(loaded.source))
                return
            self._skipped.append(Skipped(loaded.source, loaded.reason))
            if not loaded.empty:
                self._kept |= {loaded.source, str(document.file)}
            return
        self._present.add(loaded.source)
        entry = self._entries.get(loaded.source)
        if entry is not None and entry.content_hash == loaded.content_hash:
            self._confirm(loaded, entry, modified)
            return
        made = document.made or Made(split(loaded, document.root))
        for chunk in made.chunks:
            chunk.metadata["modified"] = modified
        self._waiting.append(made)
        self._stale += entry.ids if entry else []
        self._counts["changed" if entry else "added"] += 1
        language = unread_language(self._writer.embeddings, loaded.text)
        if language and not loaded.is_code:
            self._languages[language] += 1

    def _confirm(self, document: SourceText, entry: Entry, modified: str) -> None:
        """Keep an unchanged document, and correct its place and day."""
        self._counts["unchanged"] += 1
        position = f"{document.unit} {document.number}" if document.number else entry.position
        if (entry.position, entry.modified) != (position, modified):
            changes = {"position": position, "modified": modified}
            self._amended += [(identifier, changes) for identifier in entry.ids]

    def _flush(self) -> None:
        chunks = [chunk for made in self._waiting for chunk in made.chunks]
        vectors = [vector for made in self._waiting for vector in _each(made.vectors)]
        embedded, number = 0, len(self._waiting)

        def show(more: int) -> None:
            nonlocal embedded
            embedded += more
            waiting = number - number * embedded // len(chunks)
            self._progress(self._taken - waiting, self._total, chunks[-1].metadata["source"])

        change = Change(chunks, vectors, self._stale, self._amended)
        self._waiting, self._stale, self._amended = [], [], []
        self._writer.write(change, show)
        self._counts["chunks"] += len(chunks)

    def _remove_absent(self) -> None:
        unread = set(self._found.unsupported)
        absent = [
            entry
            for source, entry in self._entries.items()
            if source not in self._present and self._is_gone(source, entry, unread)
        ]
        removed = [identifier for entry in absent for identifier in entry.ids]
        self._writer.write(Change(removed=removed))
        self._counts["removed"] += len(absent)

    def _is_gone(self, source: str, entry: Entry, unread: Collection[Path]) -> bool:
        """Return whether this run looked for a source, and it was not just unreadable.

        One that was indexed under another root counts if its file is gone, or has been read.
        """
        file = Path(file_of(source, entry.position))
        if source in self._kept or _within(file, self._kept):
            return False
        if file in unread:  # A run with another loader has read it.
            return False
        if entry.root in map(str, self._roots) or file in self._found.files:
            return True
        return _within(file, self._roots) and not file.exists()


def _each(vectors: "NDArray[np.float32] | None") -> "Sequence[NDArray[np.float32]]":
    return () if vectors is None else list(vectors)


def _day_of(file: Path) -> str:
    """Return the day on which a file was modified, in UTC; empty if it cannot be read."""
    try:
        seconds = file.stat().st_mtime
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OSError, OverflowError, ValueError):
        return ""


def _leads_into(source: str, roots: Collection[Path]) -> bool:
    """Return whether a path leads to what lies in these folders, which may be unreadable now.

    A link whose target is gone, or lies elsewhere now, does not.
    """
    try:
        return _within(Path(source).resolve(strict=True), roots)
    except FileNotFoundError:
        return False
    except (OSError, RuntimeError):  # It may not be looked at, or is a link to itself.
        return True


def _within(file: Path, paths: Collection[Path | str]) -> bool:
    return any(path in paths for path in (file, str(file), *file.parents, *map(str, file.parents)))
