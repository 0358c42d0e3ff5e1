"""Write Chroma's vector graph to disk, so that a killed run cannot corrupt it.

Chroma commits every write to SQLite immediately and applies it to its graph of vectors (HNSW) in
memory; from time to time it rewrites the graph's files in place. A process that is killed while it
does so leaves files that crash the next process that opens them. Whoever opens an index therefore
stops Chroma from rewriting the files (`NEVER`), except the run that writes: it says after how many
writes they are rewritten, and keeps a copy of the old ones meanwhile (`files_kept`). The copy is
valid as long as SQLite records that the graph on disk is the one that was copied.
"""

import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock, Timeout

from crag.errors import DocumentIndexError
from crag.index.backends.chroma_client import (
    DATABASE,
    REBUILD,
    close_client,
    find_collection,
    index_errors,
    open_client,
)

if TYPE_CHECKING:
    from chromadb import Collection

NEVER = 1_000_000_000
"""Number of writes after which Chroma rewrites the files itself."""
_AT_ONCE = 2

_BACKUP = "checkpoint"
_HAS_TABLES = "SELECT count(*) = 2 FROM sqlite_master WHERE name IN ('embeddings', 'max_seq_id')"
_STATES = (
    "SELECT s.id, coalesce(m.seq_id, 0), (SELECT coalesce(max(seq_id), 0) FROM max_seq_id) "
    "FROM segments s LEFT JOIN max_seq_id m ON m.segment_id = s.id WHERE s.scope = 'VECTOR'"
)


def set_threshold(collection: "Collection", writes: int) -> None:
    """Set after how many writes Chroma rewrites the files, effective when it loads them again."""
    if collection.configuration_json["hnsw"]["sync_threshold"] == writes:
        return
    with warnings.catch_warnings():  # Chroma warns that we embed ourselves.
        warnings.filterwarnings("ignore", "legacy embedding function", DeprecationWarning)
        collection.modify(configuration={"hnsw": {"sync_threshold": writes}})


def load(collection: "Collection", writes: int = NEVER) -> None:
    """Load a graph into memory; this process rewrites its files after that many writes.

    With as many unsaved already, they are rewritten now. Other processes never do so.
    """
    set_threshold(collection, writes)
    collection.count()  # Loads the graph, and applies what is unsaved.
    set_threshold(collection, NEVER)


def unsaved(folder: Path) -> int:
    """Count the writes missing in the graph's files; each costs 0.3 ms or more when loading."""
    graphs = _graphs(folder)
    return max((graph.last - graph.sequence for graph in graphs), default=0)


def last_write(folder: Path) -> int:
    """Return the number of the last write in the database; it grows with every write."""
    return max((graph.last for graph in _graphs(folder)), default=0)


def size(folder: Path) -> int:
    """Return the number of chunks in the database, 0 where Chroma has not made its tables yet."""
    return sum(number for (number,) in _rows(folder, "SELECT count(*) FROM embeddings"))


class _Graph(NamedTuple):
    """The files of one collection's vectors, and the last write in them."""

    folder: Path
    sequence: int
    last: int
    """The last write in the database."""


@contextmanager
def files_locked(folder: Path) -> Iterator[None]:
    """Repair the graph's files, then prevent rewriting them while they are loaded.

    In a read-only folder nothing can rewrite them anyway.
    """
    try:
        lock = FileLock(folder / "files.lock").acquire()
    except OSError:
        yield
        return
    with lock:
        with index_errors(str(folder)):
            _repair(folder)
        yield


def check_files(folder: Path) -> None:
    """Check that the graph's files are there; without them Chroma finds the latest chunks alone.

    Raises:
        DocumentIndexError: they were saved once, and are gone.
    """
    for graph in _graphs(folder):
        if graph.sequence and not (graph.folder.is_dir() and any(graph.folder.iterdir())):
            problem = f"the files of its vectors, {graph.folder.name}, are missing. {REBUILD}"
            raise DocumentIndexError(str(folder), problem)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Create the folder if necessary, and lock it against other runs.

    Raises:
        DocumentIndexError: another run is writing, or the folder cannot be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise DocumentIndexError(str(folder), "this is a file; an index is a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "crag.lock").acquire(timeout=0)
    except Timeout:
        problem = "another run is writing to it. Wait until it has finished, or stop it"
        raise DocumentIndexError(str(folder), problem) from None
    except OSError as error:
        raise DocumentIndexError(str(folder), f"cannot be written: {error.strerror}") from error
    with lock:
        yield


def save(folder: Path) -> None:
    """Make Chroma rewrite the files; it must not be open in this process."""
    location = str(folder)
    with files_kept(folder), index_errors(location):
        client = open_client(location)
        try:
            collection = find_collection(client, location)
            if collection is not None:
                load(collection, _AT_ONCE)
        finally:
            close_client(client)


@contextmanager
def files_kept(folder: Path) -> Iterator[None]:
    """Keep a copy of the graph's files while they are rewritten, and other processes away."""
    with files_locked(folder), index_errors(str(folder)), _backed_up(folder):
        yield


@contextmanager
def _backed_up(folder: Path) -> Iterator[None]:
    """Keep a copy of the files while they are rewritten."""
    backup, unfinished = folder / _BACKUP, folder / f"{_BACKUP}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for graph in _graphs(folder):
        copy = unfinished / f"{graph.folder.name}@{graph.sequence}"
        if graph.folder.is_dir():
            shutil.copytree(graph.folder, copy)
        else:
            copy.mkdir()
    unfinished.rename(backup)
    yield
    _drop(backup)


def _repair(folder: Path) -> None:
    backup = folder / _BACKUP
    if not backup.is_dir():
        return
    for graph in _graphs(folder):
        copy = backup / f"{graph.folder.name}@{graph.sequence}"
        if copy.is_dir():
            shutil.rmtree(graph.folder, ignore_errors=True)
            shutil.copytree(copy, graph.folder)
    _drop(backup)


def _drop(backup: Path) -> None:
    """Remove a copy atomically, so that half of it never counts as one."""
    rubbish = backup.with_suffix(".unfinished")
    shutil.rmtree(rubbish, ignore_errors=True)
    backup.rename(rubbish)
    shutil.rmtree(rubbish)


def _graphs(folder: Path) -> list[_Graph]:
    return [_Graph(folder / name, *numbers) for name, *numbers in _rows(folder, _STATES)]


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask the database; one of a Chroma that was stopped on a full disk may lack its tables."""
    # Opened for writing, because the next reader rolls back a killed write.
    address = f"{(folder / DATABASE).resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=30)) as database:
            has_tables = database.execute(_HAS_TABLES).fetchone()[0]
            return database.execute(query).fetchall() if has_tables else []
    except sqlite3.Error as error:
        problem = f"{DATABASE} cannot be read: {error}. If it is damaged: {REBUILD.lower()}"
        raise DocumentIndexError(str(folder), problem) from error
