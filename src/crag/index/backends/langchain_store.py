"""Any vector store of LangChain as the index, with its words and its manifest in a folder.

LangChain's `VectorStore` finds by vector, adds and deletes. It has no transactions, does not list
what it holds, and may keep it in memory alone. So the folder holds the index: `chunks.sqlite3`, the
manifest, has each chunk with its vector, and `words.sqlite3` its words. The store is what searches.

A write notes the ids, changes the store, and then commits chunks and the removal of the note to the
manifest in one transaction. Of a run that was killed in between, the store may hold what the
manifest does not: searches leave it out, and the next run puts the noted ids right. Ids are made of
the content, so writing a document again replaces the same entries. A store that is found empty (it
was in memory, or its server lost it) is filled from the manifest, without embedding anything again.
"""

import json
import os
import sqlite3
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from crag.documents.sources import digest
from crag.errors import CragError, DocumentIndexError
from crag.extras import require
from crag.index.backends.checkpoint import sole_writer
from crag.index.backends.word_file import Change, WordFile, committed
from crag.index.contract import EVERYTHING, Filter, Stamp, in_order, safe_location, sentence_of
from crag.runtime.entry_points import imported

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLLECTION = "crag"
"""Name of the collection in Qdrant."""
_MOST = 500
_MOST_NAMED = 1000
"""Chunks up to which a filter names each of them to a store that takes ids."""
_TIMEOUT = 60
"""Seconds."""
_POINTS = uuid.UUID("6b1cb8f2-2d33-5c6f-9e0a-3b1a0c6a7d11")
"""Stores get UUIDs, which Qdrant asks for, made of the chunks' ids within this namespace."""
_TABLES = """
CREATE TABLE IF NOT EXISTS stamp (
    schema INTEGER NOT NULL, embeddings TEXT NOT NULL, dimension INTEGER NOT NULL,
    change INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
    metadata TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS unfinished (id TEXT PRIMARY KEY);
"""
_ADD = """
INSERT INTO chunks (id, text, metadata, vector) VALUES (?, ?, ?, ?) ON CONFLICT (id)
DO UPDATE SET text = excluded.text, metadata = excluded.metadata, vector = excluded.vector
"""
_LAST = """
number = (SELECT max(number) FROM chunks WHERE id NOT IN (SELECT id FROM unfinished))
"""
_NAMED = "id IN (SELECT value FROM json_each(?))"


Build = Callable[[Embeddings], VectorStore | AbstractContextManager[VectorStore]]
"""Returns a store for vectors as long as those of the `Embeddings`, or a context that closes it."""
Among = Callable[[Sequence[str]], Mapping[str, Any]]
"""Returns what `similarity_search_by_vector` takes to search among entries with these ids."""


class MadeVectors(Embeddings):
    """Gives a store the vectors that were made already, where it has its texts embedded."""

    def __init__(self, dimension: int) -> None:
        self._probe = [1.0] + [0.0] * (dimension - 1)
        self._waiting = list[tuple[str, list[float]]]()

    @contextmanager
    def of(self, texts: Sequence[str], vectors: "NDArray[np.float32]") -> Iterator[None]:
        """Have the texts embedded within the block, all of them and in their order.

        Raises:
            ValueError: the store asked for others.
        """
        self._waiting = list(zip(texts, vectors.tolist(), strict=True))
        try:
            yield
            if self._waiting:
                raise ValueError(f"it took {len(texts) - len(self._waiting)} of {len(texts)} texts")
        finally:
            self._waiting = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the next vectors, or any if none wait: some stores measure their length."""
        if not self._waiting:
            return [self._probe for _ in texts]
        taken, self._waiting = self._waiting[: len(texts)], self._waiting[len(texts) :]
        if [text for text, _ in taken] != list(texts):
            raise ValueError("it embeds other texts than it was given")
        return [vector for _, vector in taken]

    def embed_query(self, text: str) -> list[float]:
        """Return any vector, because questions are embedded elsewhere."""
        del text
        return self._probe


class LangChainStore:
    """An index in `folder`, searched by the vector store that `build` opens.

    One process writes at a time. One that reads sees each write at its next search.
    """

    most = _MOST

    def __init__(
        self, folder: Path, build: Build, *, location: str = "", among: Among | None = None
    ) -> None:
        self._folder = folder.expanduser().resolve()
        self.location = location or str(self._folder)
        self._build, self._among = build, among
        self._database: sqlite3.Connection | None = None
        self._words: WordFile | None = None
        self._store: VectorStore | None = None
        self._vectors = MadeVectors(1)
        self._seen = -1
        """The write to the manifest that the store has."""
        self._opened = ExitStack()
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if not (self._folder / "chunks.sqlite3").is_file():
            return None
        rows = self._rows("SELECT schema, embeddings, dimension FROM stamp")
        return Stamp(*rows[0]) if rows else None

    def create(self, stamp: Stamp) -> None:
        """Create the manifest; the store follows with the first write."""
        with self._transaction() as database:
            query = "INSERT INTO stamp (schema, embeddings, dimension) VALUES (?, ?, ?)"
            database.execute(query, stamp)

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self._rows("SELECT count(*) FROM chunks")[0][0])

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk."""
        for identifier, metadata in self._rows("SELECT id, metadata FROM chunks"):
            yield identifier, json.loads(metadata)

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by id."""
        return in_order(ids, self._kept(_NAMED, json.dumps(ids))[0])

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the nearest; ever more are asked for until enough pass the filter."""
        import numpy as np

        passing = None if where == EVERYTHING else set(self._current_words().ids(where))
        asked, (unit,) = k, _unit(np.array([vector], dtype=np.float32))
        with self._current():
            while passing is None or passing:
                nearest = self._search(unit, asked, passing)
                found = self.get([one for one in nearest if passing is None or one in passing])
                if len(found) >= k or len(nearest) < asked:
                    return [str(chunk.id) for chunk in found[:k]]
                asked *= 4
        return []

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the chunks that share the rarest words."""
        return self._current_words().find(question, k, where)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and put right what a killed run began."""
        with sole_writer(self._folder):
            try:
                unfinished = self._rows("SELECT id FROM unfinished")
                if unfinished:
                    self._put_right([row[0] for row in unfinished])
                yield
            finally:
                self.close()

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Give chunks to the store, then commit them."""
        units = _unit(vectors)
        rows = [
            (chunk.id, chunk.page_content, json.dumps(chunk.metadata), vector.tobytes())
            for chunk, vector in zip(chunks, units, strict=True)
        ]
        with self._changing([str(chunk.id) for chunk in chunks]) as known:
            self._take(known)
            self._give(chunks, units)
            with self._transaction() as database:
                database.executemany(_ADD, rows)
        self._follow(Change(added=chunks))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove chunks from the store, then from the manifest."""
        with self._changing(ids) as known:
            self._take(known)
            with self._transaction() as database:
                database.execute(f"DELETE FROM chunks WHERE {_NAMED}", (json.dumps(known),))  # noqa: S608 - a constant
        self._follow(Change(removed=known))

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Write chunks again with other metadata."""
        changed = dict(changes)
        chunks, vectors = self._kept(_NAMED, json.dumps(list(changed)))
        for chunk in chunks:
            chunk.metadata |= changed[str(chunk.id)]
        if chunks:
            self.add(chunks, vectors)

    def close(self) -> None:
        """Close files and store; they reopen on use."""
        with self._lock:
            self._close_store()
            if self._words is not None:
                self._words.close()
            if self._database is not None:
                self._database.close()
            self._words = self._database = None

    @contextmanager
    def _changing(self, ids: Sequence[str]) -> Iterator[list[str]]:
        """Note ids for the block, which changes the store and commits; yield those that are there.

        The note goes with the commit of the block.
        """
        with self._current():
            named = json.dumps(list(ids))
            query = f"SELECT id FROM chunks WHERE {_NAMED}"  # noqa: S608 - a constant
            known = [row[0] for row in self._rows(query, named)]
            self._rows("INSERT OR IGNORE INTO unfinished SELECT value FROM json_each(?)", named)
            yield known
            self._seen = self._change()

    def _put_right(self, ids: Sequence[str]) -> None:
        """Bring the store to what the manifest says of chunks that a killed run was writing."""
        with self._current():
            for identifier in ids:
                self._forget([identifier])
            self._give(*self._kept(_NAMED, json.dumps(ids)))
            self._rows("DELETE FROM unfinished")

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Open the store if it is behind the manifest, use it alone, and translate errors.

        After an error nobody knows what the store holds, so it is opened again on next use.
        """
        with self._lock:
            try:
                change = self._change()
                if self._seen != change:
                    self._open_store()
                    self._seen = change
                yield
            except BaseException as error:
                self._close_store()
                if isinstance(error, CragError) or not isinstance(error, Exception):
                    raise
                problem = (
                    f"its vector store failed: {sentence_of(error)} "
                    "Is it running, and is this its address?"
                )
                raise DocumentIndexError(self.location, problem) from error

    def _open_store(self) -> None:
        """Open the store, and fill it if it lacks the chunk that filling would write last."""
        self._close_store()
        ((dimension,),) = self._rows("SELECT dimension FROM stamp")
        self._vectors = MadeVectors(dimension)
        store = self._build(self._vectors)
        if isinstance(store, AbstractContextManager):
            store = self._opened.enter_context(store)
        if not isinstance(store, VectorStore):
            raise TypeError(f"{type(store).__name__} is no VectorStore")
        self._store = store
        last, vectors = self._kept(_LAST)
        if last and self.get(self._search(vectors[0], 10, None)):
            return
        numbers = [row[0] for row in self._rows("SELECT number FROM chunks ORDER BY number")]
        for start in range(0, len(numbers), _MOST):
            part = numbers[start : start + _MOST]
            chunks, vectors = self._kept("number BETWEEN ? AND ?", part[0], part[-1])
            self._forget([str(chunk.id) for chunk in chunks])
            self._give(chunks, vectors)

    def _close_store(self) -> None:
        self._seen, self._store = -1, None
        self._opened.close()

    def _search(self, vector: "NDArray[np.float32]", k: int, among: set[str] | None) -> list[str]:
        """Return the ids of the `k` nearest; `among` is kept to where that is cheap."""
        narrow: Mapping[str, Any] = {}
        if self._among and among is not None and len(among) <= _MOST_NAMED:
            narrow = self._among(list(map(_point, among)))
        store = cast("VectorStore", self._store)
        found = store.similarity_search_by_vector(vector.tolist(), k=k, **narrow)
        return [str(document.metadata.get("id")) for document in found]

    def _give(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Add chunks that the store does not have."""
        if not chunks:
            return
        named = [
            Document(chunk.page_content, metadata={**chunk.metadata, "id": chunk.id})
            for chunk in chunks
        ]
        points = [_point(str(chunk.id)) for chunk in chunks]
        with self._vectors.of([chunk.page_content for chunk in chunks], vectors):
            cast("VectorStore", self._store).add_documents(named, ids=points)

    def _take(self, ids: Sequence[str]) -> None:
        """Remove chunks that the store has."""
        store = cast("VectorStore", self._store)
        if ids and store.delete(list(map(_point, ids))) is False:
            raise ValueError("it did not remove what it was asked to")

    def _forget(self, ids: Sequence[str]) -> None:
        """Remove chunks that the store may have; some raise where they do not."""
        with suppress(ValueError):
            self._take(ids)

    def _current_words(self) -> WordFile:
        with self._lock:
            words = self._opened_words()
            words.follow(str(self._change()), self.stored(), self.get)
            return words

    def _follow(self, change: Change) -> None:
        """Write the words of a change, unless those before it are missing."""
        with self._lock:
            words, mark = self._opened_words(), self._change()
            if words.mark == str(mark - 1):
                words.write(str(mark), change)

    def _opened_words(self) -> WordFile:
        if self._words is None:
            self._words = WordFile(self._folder / "words.sqlite3", self.location)
        return self._words

    def _change(self) -> int:
        """Return the number of the last write to the manifest."""
        rows = self._rows("SELECT change FROM stamp")
        return int(rows[0][0]) if rows else 0

    def _kept(self, condition: str, *values: Any) -> "tuple[list[Document], NDArray[np.float32]]":
        """Return chunks in the order in which they were first written, and their vectors."""
        import numpy as np

        query = f"SELECT id, text, metadata, vector FROM chunks WHERE {condition} ORDER BY number"  # noqa: S608 - of constants
        rows = self._rows(query, *values)
        chunks = [
            Document(text, id=identifier, metadata=json.loads(metadata))
            for identifier, text, metadata, _ in rows
        ]
        vectors = np.frombuffer(b"".join(row[3] for row in rows), dtype=np.float32)
        return chunks, vectors.reshape(len(rows), -1) if rows else vectors.reshape(0, 0)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._reading() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write to the manifest, which ends what is unfinished."""
        with self._reading() as database, committed(database):
            yield database
            database.execute("DELETE FROM unfinished")
            database.execute("UPDATE stamp SET change = change + 1")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the manifest if necessary, and translate errors."""
        with self._lock:
            try:
                if self._database is None:
                    self._database = _manifest(self._folder / "chunks.sqlite3")
                yield self._database
            except sqlite3.Error as error:
                problem = f"its chunks cannot be read or written: {error}"
                raise DocumentIndexError(self.location, problem) from error


def of_function(location: str) -> LangChainStore:
    """Return an index in the store that a function makes: ``module:function://FOLDER``.

    The function is a `Build`.

    Raises:
        DocumentIndexError: there is no such function, or no folder is named.
    """
    name, _, place = location.partition("://")
    if not place:
        problem = f"name a folder for words and manifest: {name}://./FOLDER"
        raise DocumentIndexError(location, problem)
    try:
        return _in_folder(location, imported(name))
    except (ImportError, ValueError, AttributeError) as error:
        problem = f"the function {name} cannot be imported: {error}"
        raise DocumentIndexError(location, problem) from error


def faiss(location: str) -> LangChainStore:
    """Return an index in a folder, ``faiss://PATH``; all vectors are compared, in memory."""
    require("faiss", "an index with FAISS", "faiss", "langchain_community")
    return _in_folder(location, _faiss)


def _faiss(embeddings: Embeddings) -> VectorStore:
    from faiss import IndexFlatIP

    with warnings.catch_warnings():  # It says that it is no longer developed; the guide does too.
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
    index = IndexFlatIP(len(embeddings.embed_query("")))
    return FAISS(embeddings, index, InMemoryDocstore(), {})


def qdrant(location: str) -> LangChainStore:
    """Return an index in Qdrant at ``qdrant://HOST:6333``, ``qdrant+https://HOST``, or in memory.

    In memory it is the index of a folder: ``qdrant://`` and an absolute path, or one that begins
    with ``./``. The manifest of a server is in the user's folder of data, and its key is taken from
    QDRANT_API_KEY.
    """
    require("qdrant", "an index in Qdrant", "langchain_qdrant")
    scheme, _, place = location.partition("://")
    if place.startswith(("/", ".", "~")):
        return _in_folder(location, partial(_qdrant, {"location": ":memory:"}), _among_points)
    url = f"{'https' if scheme.lower() == 'qdrant+https' else 'http'}://{place}"
    key = os.environ.get("QDRANT_API_KEY")
    client = {"url": url, "api_key": key, "timeout": _TIMEOUT, "check_compatibility": False}
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return LangChainStore(
        data / "crag" / f"qdrant-{digest(location)[:16]}",
        partial(_qdrant, client),
        location=safe_location(location),
        among=_among_points,
    )


@contextmanager
def _qdrant(options: Mapping[str, Any], embeddings: Embeddings) -> Iterator[VectorStore]:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    with closing(QdrantClient(**options)) as client:
        if not client.collection_exists(COLLECTION):
            size = len(embeddings.embed_query(""))
            shape = VectorParams(size=size, distance=Distance.COSINE)
            client.create_collection(COLLECTION, vectors_config=shape)
        yield QdrantVectorStore(client, COLLECTION, embeddings, validate_collection_config=False)


def _among_points(points: Sequence[str]) -> Mapping[str, Any]:
    from qdrant_client.models import Filter as QdrantFilter
    from qdrant_client.models import HasIdCondition

    return {"filter": QdrantFilter(must=[HasIdCondition(has_id=list(points))])}


def _in_folder(location: str, build: Build, among: Among | None = None) -> LangChainStore:
    """Return an index in the folder that a location names; a user can type what it is shown as."""
    scheme, _, place = location.partition("://")
    folder = Path(place).expanduser().resolve()
    return LangChainStore(folder, build, location=f"{scheme}://{folder}", among=among)


def _manifest(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'unfinished'").fetchone():
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
    except BaseException:
        database.close()
        raise
    return database


def _point(identifier: str) -> str:
    return str(uuid.uuid5(_POINTS, identifier))


def _unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1: whatever a store measures, it then ranks them by cosine."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
