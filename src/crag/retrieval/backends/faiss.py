"""FAISS as the index: exact search in memory, over chunks that SQLite stores in a folder.

LangChain's FAISS store keeps its documents as a pickle, which runs code when it is opened, and
rewrites both of its files at every save. Here SQLite holds texts, metadata and vectors, so that a
write is one transaction; FAISS's index is made of the vectors when they are first searched, and
again after a write, also one of another process.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.extras import require
from crag.retrieval.backends.checkpoint import sole_writer
from crag.retrieval.backends.word_file import Change, WordFile, condition_of
from crag.retrieval.index import EVERYTHING, Filter, Stamp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 1000
_TABLES = """
CREATE TABLE stamp (
    schema INTEGER NOT NULL, embeddings TEXT NOT NULL, dimension INTEGER NOT NULL,
    change INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
    metadata TEXT NOT NULL, source TEXT, kind TEXT, modified TEXT, vector BLOB NOT NULL
);
CREATE INDEX sources ON chunks (source, modified);
"""
_ADD = """
INSERT INTO chunks (id, text, metadata, source, kind, modified, vector)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET text = excluded.text, metadata = excluded.metadata,
    source = excluded.source, kind = excluded.kind, modified = excluded.modified,
    vector = excluded.vector
"""


class Faiss:
    """An index in a folder, ``faiss://PATH``; all vectors are compared, in memory.

    Only one process writes at a time; one that reads sees each write at its next search.
    """

    most = _MOST

    def __init__(self, location: str) -> None:
        require("faiss", "an index with FAISS", "faiss")
        self._folder = Path(location.partition("://")[2]).expanduser().resolve()
        self.location = str(self._folder)
        self._database: sqlite3.Connection | None = None
        self._words: WordFile | None = None
        self._vectors: tuple[int, Any] = (-1, None)
        """The change that FAISS's index was made after, and that index."""
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if not self._file.is_file():
            return None
        with self._reading() as database:
            row = database.execute("SELECT schema, embeddings, dimension FROM stamp").fetchone()
        return Stamp(*row) if row else None

    def create(self, stamp: Stamp) -> None:
        """Create the file."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO stamp (schema, embeddings, dimension) VALUES (?, ?, ?)", stamp
            )

    def count(self) -> int:
        """Return the number of chunks."""
        with self._reading() as database:
            return int(database.execute("SELECT count(*) FROM chunks").fetchone()[0])

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk."""
        with self._reading() as database:
            rows = database.execute("SELECT id, metadata FROM chunks").fetchall()
        for identifier, metadata in rows:
            yield identifier, json.loads(metadata)

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by id."""
        return self._chunks("id", ids)

    def by_vector(
        self, vector: Sequence[float], k: int, where: Filter = EVERYTHING
    ) -> list[Document]:
        """Return the nearest chunks."""
        import faiss
        import numpy as np

        index, options = self._current_vectors(), {}
        if where != EVERYTHING:
            condition, values = condition_of(where)
            with self._reading() as database:
                query = f"SELECT number FROM chunks WHERE {condition}"  # noqa: S608 - of constants
                rows = database.execute(query, values).fetchall()
            among = faiss.IDSelectorBatch(np.array(rows, dtype=np.int64).reshape(-1))
            options["params"] = faiss.SearchParameters(sel=among)  # type: ignore[call-arg]
        asked = _unit(np.array([vector], dtype=np.float32))
        _, numbers = index.search(asked, min(k, max(1, index.ntotal)), **options)
        return self._chunks("number", [int(number) for number in numbers[0] if number >= 0])

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[Document]:
        """Return the chunks that share the rarest words."""
        return self.get(self._current_words().find(question, k, where))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder."""
        with sole_writer(self._folder):
            try:
                yield
            finally:
                self.close()

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Store chunks in one transaction."""
        rows = [
            (
                chunk.id, chunk.page_content, json.dumps(chunk.metadata),
                *(chunk.metadata.get(name) for name in ("source", "kind", "modified")),
                vector.tobytes(),
            )
            for chunk, vector in zip(chunks, _unit(vectors), strict=True)
        ]  # fmt: skip
        with self._transaction() as database:
            database.executemany(_ADD, rows)
        self._follow(Change(added=chunks))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove chunks in one transaction."""
        with self._transaction() as database:
            database.executemany("DELETE FROM chunks WHERE id = ?", [(one,) for one in ids])
        self._follow(Change(removed=ids))

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change metadata in one transaction."""
        query = (
            "UPDATE chunks SET metadata = json_patch(metadata, :change), "
            "modified = coalesce(:modified, modified) WHERE id = :id"
        )
        rows = [
            {"id": one, "change": json.dumps(dict(change)), "modified": change.get("modified")}
            for one, change in changes
        ]
        with self._transaction() as database:
            database.executemany(query, rows)
        self._follow(Change(amended=changes))

    def close(self) -> None:
        """Close the files; they reopen on use."""
        with self._lock:
            if self._words is not None:
                self._words.close()
            if self._database is not None:
                self._database.close()
            self._words = self._database = None
            self._vectors = (-1, None)

    @property
    def _file(self) -> Path:
        return self._folder / "chunks.sqlite3"

    def _follow(self, change: Change) -> None:
        """Write the words of a change, unless those before it are missing."""
        with self._lock:
            mark = self._change()
            words = self._opened_words()
            if words.mark == str(mark - 1):
                words.write(str(mark), change)

    def _current_words(self) -> WordFile:
        with self._lock:
            words, mark = self._opened_words(), str(self._change())
            if words.mark != mark:
                words.follow(mark, self.stored(), self.get)
            return words

    def _opened_words(self) -> WordFile:
        if self._words is None:
            self._words = WordFile(self._folder / "words.sqlite3", self.location)
        return self._words

    def _current_vectors(self) -> Any:
        import faiss
        import numpy as np

        with self._lock:
            change = self._change()
            if self._vectors[0] != change:
                with self._reading() as database:
                    rows = database.execute("SELECT number, vector FROM chunks").fetchall()
                    (dimension,) = database.execute("SELECT dimension FROM stamp").fetchone()
                index = faiss.IndexIDMap(faiss.IndexFlatIP(dimension))
                vectors = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32)
                numbers = np.array([row[0] for row in rows], dtype=np.int64)
                index.add_with_ids(vectors.reshape(-1, dimension), numbers)
                self._vectors = change, index
            return self._vectors[1]

    def _change(self) -> int:
        with self._reading() as database:
            row = database.execute("SELECT change FROM stamp").fetchone()
        return int(row[0]) if row else 0

    def _chunks(self, column: str, keys: Sequence[str | int]) -> list[Document]:
        """Return the chunks with these keys, in their order; unknown ones are left out."""
        marks = ",".join("?" * len(keys))
        query = f"SELECT {column}, id, text, metadata FROM chunks WHERE {column} IN ({marks})"  # noqa: S608 - of constants
        with self._reading() as database:
            rows = database.execute(query, list(keys)).fetchall()
        found = {
            key: Document(text, id=identifier, metadata=json.loads(metadata))
            for key, identifier, text, metadata in rows
        }
        return [found[key] for key in keys if key in found]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("UPDATE stamp SET change = change + 1")
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the file if necessary, and translate errors."""
        with self._lock:
            try:
                if self._database is None:
                    self._database = self._open()
                yield self._database
            except sqlite3.Error as error:
                problem = f"its chunks cannot be read or written: {error}"
                raise DocumentIndexError(self.location, problem) from error

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self._file, timeout=30, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA case_sensitive_like = ON")
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        return database


def _unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1, so that their inner product is the cosine."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
