"""The index in one SQLite file: chunks, metadata, vectors and words.

What is nearest is found exactly: the vectors are held in memory, and compared in one product of
matrices. They are also in a store of vectors, by default Chroma, whose graph finds what is nearest
where they do not fit. The file alone says what the index holds, and which texts wait to be told to
the store. Where a killed process left some waiting, the store is emptied and filled again from the
file, without embedding anything.
"""

import json
import os
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from crag.errors import CragError, DocumentIndexError
from crag.index.ranking import Term
from crag.index.store import DECIMALS, PAGE, DocumentIndex, Run, Stamp, among, sentence_of, unit
from crag.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Build = Callable[[Embeddings], AbstractContextManager[VectorStore]]
"""Opens a store for vectors as long as those of the `Embeddings`."""
FILE = "index.sqlite3"
_AT_ONCE = 500
"""Texts that the store of vectors is given at once."""
_REACH = 10
"""How many times more than asked for the store's graph finds, before exact vectors are compared."""
TOKENIZER = """ "ascii tokenchars '-_.:/@+#$'" """
"""Takes each of `crag.text.words` as one token."""
_TABLES = f"""
CREATE TABLE crag_index (
    schema INTEGER NOT NULL, embeddings TEXT NOT NULL, dimension INTEGER NOT NULL,
    change INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE crag_texts (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, heading TEXT NOT NULL,
    text TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE TABLE crag_chunks (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, number INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT GENERATED ALWAYS AS (json_extract(metadata, '$.source')) STORED
);
CREATE INDEX chunks_of_text ON crag_chunks (number);
CREATE INDEX chunks_of_source ON crag_chunks (source);
CREATE TABLE waiting (key TEXT PRIMARY KEY);
CREATE VIRTUAL TABLE words USING fts5(heading, text, content = '', tokenize = {TOKENIZER})
"""
_ADD_TEXT = """
INSERT INTO crag_texts (key, heading, text, vector) VALUES (:key, :heading, :text, :vector)
RETURNING number
"""
_ADD_WORDS = "INSERT INTO words (rowid, heading, text) VALUES (:number, :heading, :text)"
_REMOVE_WORDS = """
INSERT INTO words (words, rowid, heading, text) VALUES ('delete', :number, :heading, :text)
"""
_POINTS = uuid.UUID("6b1cb8f2-2d33-5c6f-9e0a-3b1a0c6a7d11")
"""Stores get UUIDs, which some ask for, made of the keys of texts within this namespace."""
_WAIT = "INSERT OR IGNORE INTO waiting VALUES (:key)"


class _Vectors(NamedTuple):
    """Vectors in the order of their numbers, in matrices of so many rows."""

    numbers: "NDArray[np.int64]"
    pages: "list[NDArray[np.float32]]"


class MadeVectors(Embeddings):
    """Gives a store the vectors that were made already, where it has its texts embedded."""

    def __init__(self, dimension: int) -> None:
        self._probe = [1.0] + [0.0] * (dimension - 1)
        self.waiting = list[list[float]]()
        """Those of the texts that are added, in their order."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the next vectors, or any if none wait: some stores measure their length."""
        if not self.waiting:
            return [self._probe for _ in texts]
        taken, self.waiting = self.waiting[: len(texts)], self.waiting[len(texts) :]
        return taken

    def embed_query(self, text: str) -> list[float]:
        """Return any vector, because questions are embedded elsewhere."""
        del text
        return self._probe


class FileIndex(DocumentIndex):
    """An index in the file `index.sqlite3` of a folder; `build` opens the store of its vectors.

    LangChain's `VectorStore` has no transactions and does not list what it holds, so that it is
    told what to add, and when to begin anew. It holds the keys of texts, with their vectors. One
    process writes at a time; any number reads meanwhile, and sees each write.
    """

    dialect = {  # noqa: RUF012 - not changed
        "each": "json_each(:values)",
        "matches": "words WHERE words MATCH :terms",
        "vector": "vector",
        "new": ":new",
    }
    by_words_query = """
        SELECT rowid AS number FROM {matches} AND {numbers}
        ORDER BY bm25(words, 1.0, 1.0), number LIMIT :k
    """
    most_held = 2 * 2**30
    """Bytes of vectors that are held in memory: 1.4 million of 384 dimensions."""

    def __init__(
        self,
        folder: Path,
        embeddings: Embeddings,
        build: Build,
        kept_in: Path | None = None,
        location: str = "",
    ) -> None:
        """`kept_in` is where the store keeps everything, if it is nobody else's to delete."""
        super().__init__(embeddings)
        self._folder = folder
        self._file = self._folder / FILE
        self.location = location or str(self._folder)
        self._build, self._kept_in = build, kept_in
        self._store: VectorStore | None = None
        self._closing = ExitStack()
        self._store_is_of = self._held_of = -1
        """The changes as of which the store is open, and the vectors are held."""
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._held: _Vectors | None = None
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if self._folder.exists() and not self._folder.is_dir():
            raise DocumentIndexError(self.location, "this is a file; an index is a folder")
        if not (self._file.is_file() and self.rows("SELECT 1 FROM sqlite_master")):
            return None
        rows = self.rows("SELECT schema, embeddings, dimension FROM crag_index")
        return Stamp(*rows[0]) if rows else None

    def create(self, stamp: Stamp) -> None:
        """Create the file; the store of vectors is opened first, to see whether it answers."""
        with self._vector_store(stamp.dimension, anew=True):
            pass
        self._file.touch()
        with self.transaction(writes=True) as run:
            for statement in _TABLES.split(";\n"):
                run(statement)
            row = "INSERT INTO crag_index VALUES (:schema, :embeddings, :dimension, 0)"
            run(row, **stamp._asdict())

    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[int]:
        """Return the nearest texts, exactly, unless there are too many to compare them all."""
        import numpy as np

        asked = unit(np.asarray(vector, np.float32))
        query = "SELECT 4 * dimension * (SELECT count(*) FROM crag_texts) FROM crag_index"
        is_large = self.rows(query)[0][0] > self.most_held
        passing = self._near_in_store(asked, _REACH * k) if is_large and not folder else None
        if folder:
            numbers, values = among(folder)
            query = f"SELECT number FROM crag_texts WHERE {numbers}"  # noqa: S608 - of constants
            passing = [number for (number,) in self.rows(query, **values)]
        held = self._read(passing) if is_large else self._vectors_held()
        if not held.pages:
            return []
        cosines = np.round(np.concatenate([page @ asked for page in held.pages]), DECIMALS)
        if passing is not None:
            cosines[~np.isin(held.numbers, passing)] = -np.inf
        least = np.partition(cosines, -k)[-k] if len(cosines) > k else -np.inf
        (chosen,) = np.nonzero((cosines >= least) & np.isfinite(cosines))
        order = chosen[np.argsort(-cosines[chosen], kind="stable")][:k]
        return list(map(int, held.numbers[order]))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and bring the store of vectors up to date, before and after."""
        with _sole_writer(self._folder, self.location):
            try:
                self._fill_store(anew=True)
                yield
                self._fill_store()
            finally:
                self.close()

    def write(self, *given: Any, **options: Any) -> None:
        """Write chunks, and tell the store of vectors where many texts wait."""
        super().write(*given, **options)
        if self.exists() and self.rows("SELECT count(*) FROM waiting")[0][0] >= PAGE:
            self._fill_store()

    def add_text(
        self, run: Run, key: str, heading: str, text: str, vector: "NDArray[np.float32]"
    ) -> None:
        """Store a text, its words and its vector, and have the store wait for it."""
        values = {"heading": heading, "text": text, "vector": vector.tobytes()}
        ((number,),) = run(_ADD_TEXT, key=key, **values)
        run(_ADD_WORDS, number=number, heading=_spelled(heading), text=_spelled(text))
        run(_WAIT, key=key)

    def removed_text(self, run: Run, number: int, key: str, heading: str, text: str) -> None:
        """Remove the words of a text."""
        run(_REMOVE_WORDS, number=number, heading=_spelled(heading), text=_spelled(text))
        run(_WAIT, key=key)

    @staticmethod
    def vector_of(stored: bytes) -> "NDArray[np.float32]":
        """Return a vector from its bytes."""
        import numpy as np

        return np.frombuffer(stored, np.float32)

    @staticmethod
    def matching(terms: Sequence[Term]) -> str:
        """Return an expression of FTS5."""
        return " OR ".join(f'"{" ".join(term)}"' for term in terms)

    def close(self) -> None:
        """Close file and store, and forget the vectors; they reopen on use."""
        with self._lock:
            self._close_store()
            if self._database is not None:
                self._database.close()
            self._database, self._held = None, None
            self._store_is_of = self._held_of = -1
            self._checked = False

    def _vectors_held(self) -> _Vectors:
        """Return all vectors, which are read again after each write."""
        with self._lock:
            ((change,),) = self.rows("SELECT change FROM crag_index")
            if self._held is None or self._held_of != change:
                self._held = None
                self._held, self._held_of = self._read(), change
            return self._held

    def _read(self, numbers: Sequence[int] | None = None) -> _Vectors:
        """Return the vectors of these texts, or of all."""
        import numpy as np

        chosen = "" if numbers is None else "AND number IN (SELECT value FROM {each})"
        query = f"""
            SELECT number, vector FROM crag_texts WHERE number > :last {chosen}
            ORDER BY number LIMIT {PAGE}
        """  # noqa: S608 - of constants
        read, pages = [0], []
        with self.transaction() as run:
            while rows := run(query, last=read[-1], values=json.dumps(numbers)):
                read += [number for number, _ in rows]
                joined = b"".join(vector for _, vector in rows)
                pages.append(np.frombuffer(joined, np.float32).reshape(len(rows), -1))
        return _Vectors(np.array(read[1:], np.int64), pages)

    def _near_in_store(self, asked: "NDArray[np.float32]", k: int) -> list[int] | None:
        """Return the numbers of near texts, or None if the store does not know all."""
        query = "SELECT change, dimension, EXISTS (SELECT 1 FROM waiting) FROM crag_index"
        change, dimension, is_behind = self.rows(query)[0]
        if is_behind:
            return None
        with self._lock:
            if self._store_is_of != change:  # Another process may have written to it.
                self._close_store()
                self._store_is_of = change
            with self._vector_store(dimension) as store:
                near = store.similarity_search_by_vector(asked.tolist(), k=k)
        keys = [document.metadata["key"] for document in near]
        query = "SELECT number FROM crag_texts WHERE key IN (SELECT value FROM {each})"
        found = [number for (number,) in self.rows(query, values=json.dumps(keys))]
        ((total,),) = self.rows("SELECT count(*) FROM crag_texts")
        return found if len(found) >= min(k, total) // 2 else None

    def _fill_store(self, *, anew: bool = False) -> None:
        """Tell the store which texts came and went; within `writing`.

        What waits `anew` was left by a killed process, and the state of the store is not known.
        """
        if self.stamp() is None or not self.rows("SELECT 1 FROM waiting LIMIT 1"):
            return
        ((dimension,),) = self.rows("SELECT dimension FROM crag_index")
        is_empty = anew and self._kept_in is not None
        with self._vector_store(dimension, anew=is_empty) as store:
            query = "SELECT key FROM waiting UNION SELECT key FROM crag_texts WHERE :all"
            keys = [key for (key,) in self.rows(query, all=is_empty)]
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                there = self.vectors(part)
                gone = [_point(key) for key in part if anew or key not in there]
                with suppress(KeyError, ValueError):  # Of stores that do not have one.
                    if gone:
                        store.delete(gone)
                self._given.waiting = [vector.tolist() for vector in there.values()]
                entries = [Document(key, metadata={"key": key}) for key in there]
                if there:
                    store.add_documents(entries, ids=list(map(_point, there)))
            with self.transaction(writes=True) as run:
                run("DELETE FROM waiting")
                run("UPDATE crag_index SET change = change + 1")

    @contextmanager
    def _vector_store(self, dimension: int, *, anew: bool = False) -> Iterator[VectorStore]:
        """Give the store of vectors; whatever it raises is translated.

        Nobody knows its state then, so it is closed.
        """
        with self._lock:
            try:
                if anew and self._kept_in is not None:
                    self._close_store()
                    shutil.rmtree(self._kept_in, ignore_errors=True)
                if self._store is None:
                    self._given = MadeVectors(dimension)
                    self._store = self._closing.enter_context(self._build(self._given))
                yield self._store
            except CragError:
                raise
            except Exception as error:
                self._close_store()
                advice = _advice(error, "Is it running, and is this its address?")
                problem = f"its vector store failed: {sentence_of(error)} {advice}"
                raise DocumentIndexError(self.location, problem) from error

    def _close_store(self) -> None:
        self._store = None
        self._closing.close()

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Run]:
        """Give what runs queries; one that writes begins as the only one.

        The file is opened if necessary, and again where another one has taken its place.
        """
        with self._lock:
            try:
                with suppress(FileNotFoundError):
                    if self._database is not None and self._file.stat().st_ino != self._inode:
                        self.close()
                if self._database is None:
                    self._database = _connected(self._file)
                    self._inode = self._file.stat().st_ino
                with self._database as database:  # Which commits, or rolls back.
                    database.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                    yield lambda query, **values: database.execute(
                        query.format(**self.dialect), values
                    ).fetchall()
            except sqlite3.Error as error:
                advice = _advice(error, "If it is damaged: delete the folder and index again")
                raise DocumentIndexError(self.location, f"{error}. {advice}") from error
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
                raise DocumentIndexError(self.location, problem) from error


def _advice(error: Exception, otherwise: str) -> str:
    is_full = any(sign in str(error) for sign in ("is full", "disk I/O", "too large", "No space"))
    return "Is the disk full? The index itself is whole" if is_full else otherwise


def _connected(file: Path) -> sqlite3.Connection:
    """Open a file, also in a folder where nothing may be written and nobody writes."""
    mode = "mode=rw" if os.access(file.parent, os.W_OK) else "mode=ro&immutable=1"
    database = sqlite3.connect(
        f"{file.as_uri()}?{mode}",
        timeout=30, isolation_level=None, check_same_thread=False, uri=True,
    )  # fmt: skip
    try:
        database.execute("PRAGMA case_sensitive_like = ON")
        if not database.execute("PRAGMA schema_version").fetchone()[0]:
            database.execute("PRAGMA page_size = 8192")
            database.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def _sole_writer(folder: Path, location: str) -> Iterator[None]:
    """Create the folder if necessary, and lock it against other runs."""
    if folder.exists() and not folder.is_dir():
        raise DocumentIndexError(location, "this is a file; an index is a folder")
    from filelock import FileLock, Timeout  # Which loads asyncio, and no question needs it.

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "crag.lock").acquire(timeout=0)
    except Timeout:
        problem = "another run is writing to it. Wait until it has finished, or stop it"
        raise DocumentIndexError(location, problem) from None
    except OSError as error:
        raise DocumentIndexError(location, f"cannot be written: {error.strerror}") from error
    with lock:
        yield


def _point(key: str) -> str:
    return str(uuid.uuid5(_POINTS, key))


def _spelled(text: str) -> str:
    return " ".join(words(text))
