"""The index in one SQLite file: chunks, metadata, vectors and words.

What is nearest is found exactly: the vectors are held in memory, and compared in one product of
matrices. They are also in a store of vectors, by default Chroma, whose graph finds what is nearest
where they do not fit. The file alone says what the index holds, and which texts wait to be told to
the store. Where a killed process left some waiting, the store is emptied and filled again from the
file, without embedding anything.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.index.contract import (
    EVERYTHING,
    MOST_PLACES,
    Change,
    Filter,
    Hit,
    Passage,
    Stamp,
    Term,
    alike,
    heading_of,
    placed,
    text_key,
    unit,
)  # fmt: skip
from crag.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from crag.index.backends.vector_store import StoreOfVectors

FILE = "index.sqlite3"
_BLOCK = 10_000
_AT_ONCE = 500
"""Texts that the store of vectors is given at once."""
_REACH = 10
"""How many times more than asked for the store's graph finds, before exact vectors are compared."""
_DECIMALS = 6
"""Cosines are rounded, so that equal vectors are in the order of their numbers."""
TOKENIZER = """ "ascii tokenchars '-_.:/@+#$'" """
"""Takes each of `crag.text.words` as one token."""
_TABLES = f"""
CREATE TABLE stamp (
    schema INTEGER NOT NULL, embeddings TEXT NOT NULL, dimension INTEGER NOT NULL,
    change INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE texts (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, heading TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE vectors (number INTEGER PRIMARY KEY, alike INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE TABLE chunks (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, number INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT GENERATED ALWAYS AS (json_extract(metadata, '$.source')) STORED,
    kind TEXT GENERATED ALWAYS AS (json_extract(metadata, '$.kind')) STORED,
    modified TEXT GENERATED ALWAYS AS (json_extract(metadata, '$.modified')) STORED
);
CREATE INDEX chunks_of_text ON chunks (number);
CREATE INDEX chunks_of_source ON chunks (source, modified);
CREATE TABLE waiting (key TEXT PRIMARY KEY);
CREATE VIRTUAL TABLE words USING fts5(heading, text, content = '', tokenize = {TOKENIZER})
"""
_ADD_WORDS = "INSERT INTO words (rowid, heading, text) VALUES (?, ?, ?)"
_REMOVE_WORDS = "INSERT INTO words (words, rowid, heading, text) VALUES ('delete', ?, ?, ?)"
_NUMBERS = "SELECT DISTINCT number FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
_REMOVE = """
DELETE FROM texts WHERE number IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.number = texts.number)
RETURNING number, key, heading, text
"""
_WAIT = "INSERT OR IGNORE INTO waiting VALUES (?)"
_BY_WORDS = """
SELECT number, alike FROM (
    SELECT rowid AS number, bm25(words, 1.0, 1.0) AS score FROM words
    WHERE words MATCH ? AND {condition} ORDER BY score, rowid LIMIT ?
) JOIN vectors USING (number) ORDER BY score, number
"""
_PASSAGES = """
SELECT number, heading, text, alike, vector FROM texts JOIN vectors USING (number)
WHERE number IN (SELECT value FROM json_each(?))
"""
_DOCUMENTS = """
SELECT id, text, metadata FROM chunks JOIN texts USING (number) WHERE number = ?
ORDER BY NOT ({condition}), place LIMIT {most}
"""
_VECTORS = """
SELECT key, vector FROM texts JOIN vectors USING (number)
WHERE key IN (SELECT value FROM json_each(?))
"""


class _Vectors(NamedTuple):
    """Vectors, in the order of their numbers."""

    numbers: "NDArray[np.int64]"
    alike: "NDArray[np.int64]"
    values: "NDArray[np.float32]"


class FileIndex:
    """An index in the file `index.sqlite3` of a folder, with the `store` of its vectors.

    One process writes at a time; any number reads meanwhile, and sees each write.
    """

    most_held = 2 * 2**30
    """Bytes of vectors that are held in memory: 1.4 million of 384 dimensions."""

    def __init__(self, folder: Path, store: "StoreOfVectors", location: str = "") -> None:
        self._folder = folder.expanduser().resolve()
        self._file = self._folder / FILE
        self.location = location or str(self._folder)
        self._store = store
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
        is_there = self._file.is_file()
        if not is_there or not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'stamp'"):
            return None
        return Stamp(*self._rows("SELECT schema, embeddings, dimension FROM stamp")[0])

    def create(self, stamp: Stamp) -> None:
        """Create the file; the store of vectors is opened first, to see whether it answers."""
        with self._lock, self._store.errors(self.location):
            self._store.clear()
            self._store.open(stamp.dimension)
        self._file.touch()
        with self._transaction() as database:
            for statement in _TABLES.split(";\n"):
                database.execute(statement)
            row = "INSERT INTO stamp (schema, embeddings, dimension) VALUES (?, ?, ?)"
            database.execute(row, stamp)

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self._rows("SELECT count(*) FROM chunks")[0][0])

    def stored(self, where: Filter = EVERYTHING) -> Iterator[Document]:
        """Return chunks, a page at a time."""
        condition, values = _condition(where)
        query = f"""
            SELECT id, text, metadata, place FROM chunks JOIN texts USING (number)
            WHERE place > ? AND {condition} ORDER BY place LIMIT {_BLOCK}
        """  # noqa: S608 - of constants
        last = 0
        while rows := self._rows(query, last, *values):
            last = rows[-1][3]
            yield from map(_chunk, rows)

    def vectors(self, keys: Sequence[str]) -> "Mapping[str, NDArray[np.float32]]":
        """Return the vectors of texts by key."""
        import numpy as np

        rows = self._rows(_VECTORS, json.dumps(keys))
        return {key: np.frombuffer(vector, np.float32) for key, vector in rows}

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[Hit]:
        """Return the nearest texts, exactly, unless there are too many to compare them all."""
        import numpy as np

        asked = unit(np.asarray(vector, np.float32))
        passing = None
        if where != EVERYTHING:
            condition, values = _condition(where)
            query = f"SELECT DISTINCT number FROM chunks WHERE {condition}"  # noqa: S608 - of constants
            passing = [number for (number,) in self._rows(query, *values)]
        ((size,),) = self._rows("SELECT 4 * dimension * (SELECT count(*) FROM texts) FROM stamp")
        is_large = size > self.most_held
        if is_large and passing is None:
            passing = self._near_in_store(asked, _REACH * k)
        held = self._vectors_held() if passing is None or not is_large else self._read(passing)
        cosines = np.round(held.values @ asked, _DECIMALS)
        if passing is not None:
            cosines[~np.isin(held.numbers, passing)] = -np.inf
        least = np.partition(cosines, -k)[-k] if len(cosines) > k else -np.inf
        (chosen,) = np.nonzero((cosines >= least) & np.isfinite(cosines))
        order = chosen[np.argsort(-cosines[chosen], kind="stable")][:k]
        return list(map(Hit, held.numbers[order].tolist(), held.alike[order].tolist()))

    def by_words(self, terms: Sequence[Term], k: int, where: Filter = EVERYTHING) -> list[Hit]:
        """Return the texts with the highest BM25 (k1 1.2, b 0.75)."""
        if not terms:
            return []
        condition, values = _condition(where)
        if where != EVERYTHING:
            condition = f"rowid IN (SELECT number FROM chunks WHERE {condition})"  # noqa: S608 - of constants
        query = _BY_WORDS.format(condition=condition)
        rows = self._rows(query, " OR ".join(map(_quoted, terms)), *values, k)
        return [Hit(*row) for row in rows]

    def holders(self, terms: Sequence[Term]) -> tuple[int, list[int]]:
        """Return the number of texts, and how many have each of the terms."""
        query = "SELECT count(*) FROM words WHERE words MATCH ?"
        total = self._rows("SELECT count(*) FROM texts")[0][0]
        return total, [self._rows(query, _quoted(term))[0][0] for term in terms]

    def passages(self, numbers: Sequence[int], vector: Sequence[float]) -> list[Passage]:
        """Return texts by number."""
        import numpy as np

        rows = self._rows(_PASSAGES, json.dumps(list(numbers)))
        if not rows or not len(vector):
            return [Passage(*row[:4]) for row in rows]
        cosines = _matrix([row[4] for row in rows]) @ unit(np.asarray(vector, np.float32))
        rounded = np.round(cosines, _DECIMALS).tolist()
        found = zip(rows, rounded, strict=True)
        return [Passage(*row[:4])._replace(cosine=cosine) for row, cosine in found]

    def documents(self, numbers: Sequence[int], where: Filter = EVERYTHING) -> list[Document]:
        """Return a chunk for each text, of those that pass the one stored first."""
        condition, values = _condition(where)
        query = _DOCUMENTS.format(condition=condition, most=MOST_PLACES + 1)
        found = (self._rows(query, number, *values) for number in numbers)
        return [placed([_chunk(row) for row in rows]) for rows in found if rows]

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

    def write(self, change: Change) -> None:
        """Write a change in one transaction."""
        import numpy as np

        replaced = [*change.removed, *(str(chunk.id) for chunk in change.chunks)]
        with self._transaction() as database:
            touched = database.execute(_NUMBERS, (json.dumps(replaced),)).fetchall()
            for identifier in replaced:
                database.execute("DELETE FROM chunks WHERE id = ?", (identifier,))
            units = unit(np.asarray(change.vectors, np.float32)) if change.chunks else ()
            for chunk, vector in zip(change.chunks, units, strict=True):
                number = _number(database, chunk, vector)
                query = "INSERT INTO chunks (id, number, metadata) VALUES (?, ?, ?)"
                database.execute(query, (chunk.id, number, json.dumps(chunk.metadata)))
            for identifier, amended in change.amended:
                query = "UPDATE chunks SET metadata = json_patch(metadata, ?) WHERE id = ?"
                database.execute(query, (json.dumps(amended), identifier))
            _remove_unused(database, [number for (number,) in touched])
            database.execute("UPDATE stamp SET change = change + 1")
        if self._rows("SELECT count(*) FROM waiting")[0][0] >= _BLOCK:
            self._fill_store()

    def close(self) -> None:
        """Close file and store, and forget the vectors; they reopen on use."""
        with self._lock:
            self._store.close()
            if self._database is not None:
                self._database.close()
            self._database, self._held = None, None
            self._store_is_of = self._held_of = -1

    def _vectors_held(self) -> _Vectors:
        """Return all vectors, which are read again after each write."""
        with self._lock:
            ((change,),) = self._rows("SELECT change FROM stamp")
            if self._held is None or self._held_of != change:
                self._held = None
                self._held, self._held_of = self._read(None), change
            return self._held

    def _read(self, numbers: Sequence[int] | None) -> _Vectors:
        """Return the vectors of these texts, or of all."""
        import numpy as np

        among = "" if numbers is None else "WHERE number IN (SELECT value FROM json_each(?))"
        values = () if numbers is None else (json.dumps(numbers),)
        query = f"FROM vectors {among} ORDER BY number"
        with self._transaction("DEFERRED") as database:
            (dimension,) = database.execute("SELECT dimension FROM stamp").fetchone()
            (count,) = database.execute(f"SELECT count(*) {query}", values).fetchone()
            found = _Vectors(
                np.empty(count, np.int64),
                np.empty(count, np.int64),
                np.empty((count, dimension), np.float32),
            )
            rows = database.execute(f"SELECT number, alike, vector {query}", values)
            for start in range(0, count, _BLOCK):
                part = slice(start, start + _BLOCK)
                found.numbers[part], found.alike[part], vectors = zip(
                    *rows.fetchmany(_BLOCK), strict=True
                )
                found.values[part] = _matrix(vectors)
        return found

    def _near_in_store(self, asked: "NDArray[np.float32]", k: int) -> list[int] | None:
        """Return the numbers of near texts, or None if the store does not know all."""
        query = "SELECT change, dimension, EXISTS (SELECT 1 FROM waiting) FROM stamp"
        change, dimension, is_behind = self._rows(query)[0]
        if is_behind:
            return None
        with self._lock, self._store.errors(self.location):
            if self._store_is_of != change:  # Another process may have written to it.
                self._store.close()
                self._store.open(dimension)
                self._store_is_of = change
            keys = self._store.near(asked, k)
        query = "SELECT number FROM texts WHERE key IN (SELECT value FROM json_each(?))"
        found = [number for (number,) in self._rows(query, json.dumps(keys))]
        ((total,),) = self._rows("SELECT count(*) FROM texts")
        return found if len(found) >= min(k, total) // 2 else None

    def _fill_store(self, *, anew: bool = False) -> None:
        """Tell the store which texts came and went; within `writing`.

        What waits `anew` was left by a killed process, and the state of the store is not known.
        """
        if self.stamp() is None:
            return
        if not self._rows("SELECT 1 FROM waiting LIMIT 1"):
            return
        with self._lock, self._store.errors(self.location):
            is_empty = anew and self._store.clear()
            self._store.open(self._rows("SELECT dimension FROM stamp")[0][0])
            query = "SELECT key FROM waiting UNION SELECT key FROM texts WHERE ?"
            keys = [key for (key,) in self._rows(query, is_empty)]
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                there = dict(self._rows(_VECTORS, json.dumps(part)))
                self._store.remove([key for key in part if anew or key not in there])
                if there:
                    self._store.add(list(there), _matrix(list(there.values())))
            with self._transaction() as database:
                database.execute("DELETE FROM waiting")
                database.execute("UPDATE stamp SET change = change + 1")

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._opened() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._opened() as database:
            database.execute(f"BEGIN {kind}")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file, and again where another one has taken its place; translate errors."""
        with self._lock:
            try:
                with suppress(FileNotFoundError):
                    if self._database is not None and self._file.stat().st_ino != self._inode:
                        self.close()
                if self._database is None:
                    self._database = _connected(self._file)
                    self._inode = self._file.stat().st_ino
                yield self._database
            except sqlite3.Error as error:
                advice = "If it is damaged: delete the folder and index again"
                if any(sign in str(error) for sign in ("full", "disk I/O", "too large")):
                    advice = "Is the disk full? The index itself is whole"
                raise DocumentIndexError(self.location, f"{error}. {advice}") from error
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
                raise DocumentIndexError(self.location, problem) from error


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


def _number(database: sqlite3.Connection, chunk: Document, vector: "NDArray[np.float32]") -> int:
    """Return the number of a chunk's text, which is stored if it is new."""
    key, heading, text = text_key(chunk), heading_of(chunk), chunk.page_content
    known = database.execute("SELECT number FROM texts WHERE key = ?", (key,)).fetchone()
    if known:
        return int(known[0])
    query = "INSERT INTO texts (key, heading, text) VALUES (?, ?, ?) RETURNING number"
    ((number,),) = database.execute(query, (key, heading, text)).fetchall()
    row = (number, alike(text), vector.tobytes())
    database.execute("INSERT INTO vectors VALUES (?, ?, ?)", row)
    database.execute(_ADD_WORDS, (number, *_spelled(heading, text)))
    database.execute(_WAIT, (key,))
    return int(number)


def _remove_unused(database: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove those of the texts that no chunk has any more."""
    for number, key, *text in database.execute(_REMOVE, (json.dumps(numbers),)).fetchall():
        database.execute("DELETE FROM vectors WHERE number = ?", (number,))
        database.execute(_REMOVE_WORDS, (number, *_spelled(*text)))
        database.execute(_WAIT, (key,))


def _matrix(vectors: Sequence[bytes]) -> "NDArray[np.float32]":
    import numpy as np

    return np.frombuffer(b"".join(vectors), np.float32).reshape(len(vectors), -1)


def _chunk(row: Sequence[Any]) -> Document:
    return Document(row[1], id=row[0], metadata=json.loads(row[2]))


def _spelled(*texts: str) -> list[str]:
    return [" ".join(words(text)) for text in texts]


def _quoted(term: Term) -> str:
    return f'"{" ".join(term)}"'


def _condition(where: Filter) -> tuple[str, list[str]]:
    """Return a condition on the table of chunks, made of constants, and its parameters."""
    patterns = where.patterns() if where.folder else ()
    sources = " OR ".join([r"source LIKE ? ESCAPE '\'"] * len(patterns))
    compared = where.comparisons()
    conditions = [f"({sources or 1})", *(f"{column} {sign} ?" for column, sign, _ in compared)]
    return " AND ".join(conditions), [*patterns, *(value for *_, value in compared)]
