"""The index in one SQLite file: chunks, metadata, vectors and words.

What is nearest is found exactly: the vectors are held in memory, and compared in one product of
matrices. They are also in a store of vectors, by default Chroma, whose graph finds what is nearest
where they do not fit. The file alone says what the index holds, and which texts wait to be told to
the store. Where a killed process left some waiting, the store is emptied and filled again from the
file, without embedding anything.
"""

import json
import os
import re
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from crag.errors import CragError, DocumentIndexError
from crag.index.ranking import Term
from crag.index.store import (
    PAGE,
    DocumentIndex,
    Run,
    Stamp,
    among,
    cosines,
    sentence_of,
    unit,
)
from crag.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Vectors = tuple[NDArray[np.int64], NDArray[np.float32]]

Build = Callable[[Embeddings], AbstractContextManager[VectorStore]]
"""Opens a store for vectors as long as those of the `Embeddings`."""
FILE = "index.sqlite3"
_AT_ONCE = 500
"""Texts that the store of vectors is given at once."""
_CHOSEN = "number IN (SELECT value FROM {each})"
_REACH = 10
"""How many times more than asked for the store's graph finds, before exact vectors are compared."""
TOKENIZER = """ "ascii tokenchars '-_.:/@+#$'" """
"""Takes each of `crag.text.words` as one token."""
_TABLES = f"""
CREATE TABLE crag_index (
    schema INTEGER NOT NULL, embeddings TEXT NOT NULL, dimension INTEGER NOT NULL
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
CREATE TABLE waiting (number INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE words USING fts5(heading, text, content = '', tokenize = {TOKENIZER});
CREATE TRIGGER text_comes AFTER INSERT ON crag_texts BEGIN
    INSERT INTO words (rowid, heading, text)
    VALUES (new.number, spelled(new.heading), spelled(new.text));
    INSERT INTO waiting VALUES (new.number);
END;
CREATE TRIGGER text_goes AFTER DELETE ON crag_texts BEGIN
    INSERT INTO words (words, rowid, heading, text)
    VALUES ('delete', old.number, spelled(old.heading), spelled(old.text));
    INSERT OR IGNORE INTO waiting VALUES (old.number);
END
"""  # noqa: S608 - of constants
_ADD_TEXT = """
INSERT INTO crag_texts (key, heading, text, vector) VALUES (:key, :heading, :text, :vector)
"""


class MadeVectors(Embeddings):
    """Gives a store the vectors that were made already, where it has its texts embedded."""

    def __init__(self, dimension: int) -> None:
        self._any = [1.0] + [0.0] * (dimension - 1)
        self.known = dict[str, list[float]]()
        """By text, those that are added; some stores measure the length of others."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts, or any."""
        return list(map(self.embed_query, texts))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text, or any, because questions are embedded elsewhere."""
        return self.known.get(text, self._any)


class FileIndex(DocumentIndex):
    """An index in the file `index.sqlite3` of a folder; `build` opens the store of its vectors.

    LangChain's `VectorStore` has no transactions and does not list what it holds, so that it is
    told what to add, and when to begin anew. It holds the numbers of texts, with their vectors. One
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
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._held: _Vectors | None = None
        self._version = -1
        """The state of the file as of which the store is open, and the vectors are held."""
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if not (self._file.is_file() and self.rows("SELECT 1 FROM sqlite_master")):
            return None
        rows = self.rows("SELECT schema, embeddings, dimension FROM crag_index")
        return Stamp(*rows[0]) if rows else None

    def create(self, stamp: Stamp) -> None:
        """Create the file, and open the store of vectors to see whether it answers."""
        self._file.touch()
        with self.transaction(writes=True) as run:
            for statement in re.split(r";\n(?=CREATE)", _TABLES):
                run(statement)
            row = "INSERT INTO crag_index VALUES (:schema, :embeddings, :dimension)"
            run(row, **stamp._asdict())
        with self._vector_store(anew=True):
            pass

    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[int]:
        """Return the nearest texts, exactly, unless there are too many to compare them all."""
        import numpy as np

        asked = unit(np.asarray(vector, np.float32))
        query = "SELECT 4 * dimension * (SELECT count(*) FROM crag_texts) FROM crag_index"
        is_large = self.rows(query)[0][0] > self.most_held
        if folder:
            condition, values = among(folder)
            numbers, vectors = self._read(condition, **values)
        elif is_large:
            numbers, vectors = self._near_in_store(asked, _REACH * k)
        else:
            numbers, vectors = self._vectors_held()
        order = np.argsort(-cosines(vectors, asked), kind="stable")
        return list(map(int, numbers[order[:k]]))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and bring the store of vectors up to date, before and after."""
        from filelock import FileLock, Timeout  # Which loads asyncio, and no question needs it.

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._folder / "crag.lock").acquire(timeout=0)
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            if isinstance(error, Timeout):
                problem = "another run is writing to it. Wait until it has finished, or stop it"
            raise DocumentIndexError(self.location, problem) from error
        with lock:
            try:
                self._fill_store(anew=True)
                yield
                self._fill_store()
            finally:
                self.close()

    def add_text(
        self, run: Run, key: str, heading: str, text: str, vector: "NDArray[np.float32]"
    ) -> None:
        """Store a text and its vector; triggers add its words, and have the store wait for it."""
        run(_ADD_TEXT, key=key, heading=heading, text=text, vector=vector.tobytes())

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
            self._version, self._checked = -1, False

    def _vectors_held(self) -> "_Vectors":
        """Return all vectors, which are read again after each write."""
        with self._lock:
            self._forget_if_written()
            if self._held is None:
                self._held = self._read()
            return self._held

    def _forget_if_written(self) -> None:
        """Forget vectors and close the store if another process has written since."""
        ((version,),) = self.rows("PRAGMA data_version")
        if self._version != version:
            self._close_store()
            self._held, self._version = None, version

    def _read(self, condition: str = "true", **values: Any) -> "_Vectors":
        """Return the numbers of texts, in their order, and their vectors as rows."""
        import numpy as np

        size = f"""
            SELECT (SELECT count(*) FROM crag_texts WHERE {condition}), dimension FROM crag_index
        """  # noqa: S608 - of constants
        query = f"""
            SELECT number, vector FROM crag_texts WHERE number > :last AND {condition}
            ORDER BY number LIMIT {PAGE}
        """  # noqa: S608 - of constants
        with self.transaction() as run:
            ((total, dimension),) = run(size, **values)
            numbers = np.zeros(total, np.int64)
            vectors = np.empty((total, dimension), np.float32)
            for start in range(0, total, PAGE):
                rows = run(query, last=int(numbers[start - 1]), **values)
                page = slice(start, start + len(rows))
                numbers[page] = [number for number, _ in rows]
                vectors[page] = [self.vector_of(vector) for _, vector in rows]
        return numbers, vectors

    def _near_in_store(self, asked: "NDArray[np.float32]", k: int) -> "_Vectors":
        """Return the vectors that the store finds to be near, or all if it does not know them."""
        ((is_behind, total),) = self.rows(
            "SELECT EXISTS (SELECT 1 FROM waiting), count(*) FROM crag_texts"
        )
        if is_behind:
            return self._read()
        with self._lock:
            self._forget_if_written()
            with self._vector_store() as store:
                near = store.similarity_search_by_vector(asked.tolist(), k=k)
        numbers = [document.page_content for document in near]  # Or what older versions stored.
        found = self._read(_CHOSEN, values=json.dumps(numbers))
        return found if len(found[0]) >= min(k, total) // 2 else self._read()

    def _fill_store(self, *, anew: bool = False) -> None:
        """Tell the store which texts came and went; within `writing`.

        What waits `anew` was left by a killed process, and the state of the store is not known.
        """
        if self.stamp() is None or not self.rows("SELECT 1 FROM waiting LIMIT 1"):
            return
        is_empty = anew and self._kept_in is not None
        with self._vector_store(anew=is_empty) as store:
            query = "SELECT number FROM waiting UNION SELECT number FROM crag_texts WHERE :all"
            numbers = [number for (number,) in self.rows(query, all=is_empty)]
            for start in range(0, len(numbers), _AT_ONCE):
                part = numbers[start : start + _AT_ONCE]
                there, vectors = self._read(_CHOSEN, values=json.dumps(part))
                gone = [_point(number) for number in part if anew or number not in there]
                with suppress(KeyError, ValueError):  # Of stores that do not have one.
                    if gone:
                        store.delete(gone)
                texts = list(map(str, there.tolist()))
                self._given.known = dict(zip(texts, vectors.tolist(), strict=True))
                if texts:
                    store.add_texts(texts, ids=list(map(_point, there.tolist())))
            with self.transaction(writes=True) as run:
                run("DELETE FROM waiting")

    @contextmanager
    def _vector_store(self, *, anew: bool = False) -> Iterator[VectorStore]:
        """Give the store of vectors; whatever it raises is translated.

        Nobody knows its state then, so it is closed.
        """
        with self._lock:
            try:
                if anew and self._kept_in is not None:
                    self._close_store()
                    shutil.rmtree(self._kept_in, ignore_errors=True)
                if self._store is None:
                    self._given = MadeVectors(self.rows("SELECT dimension FROM crag_index")[0][0])
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
        database.create_function("spelled", 1, _spelled, deterministic=True)
        database.execute("PRAGMA case_sensitive_like = ON")
        if not database.execute("PRAGMA schema_version").fetchone()[0]:
            database.execute("PRAGMA page_size = 8192")
            database.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        database.close()
        raise
    return database


def _point(number: int) -> str:
    """Return the number of a text as a UUID, which some stores ask for."""
    return str(uuid.UUID(int=number))


def _spelled(text: str) -> str:
    return " ".join(words(text))
