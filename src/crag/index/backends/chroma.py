"""Chroma as the index: embedded, in a folder, or a server.

Chroma finds by vector. It does not rank by words, so that the words are in a `WordFile`: beside the
vectors of a folder, and in the user's cache for a server.
"""

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.index.backends.checkpoint import (
    NEVER,
    check_files,
    files_kept,
    files_locked,
    last_write,
    load,
    save,
    size,
    sole_writer,
    unsaved,
)
from crag.index.backends.chroma_client import (
    COLLECTION,
    close_client,
    find_collection,
    has_database,
    index_errors,
    open_client,
)
from crag.index.backends.word_file import Change, WordFile, cached_words
from crag.index.contract import EVERYTHING, Filter, Stamp, in_order

if TYPE_CHECKING:
    import numpy as np
    from chromadb import Collection
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.types import Where
    from numpy.typing import NDArray

_PAGE = 5000
_IDS = 100_000
"""Skipping what came before takes Chroma longer, the more that is: so few large pages of ids."""
_FEWEST_UNSAVED = 1000
_LEAST_SAVED = 2000
_SAVED_PER_ROOT = 18
_CHANGE = "change"
"""Metadata of a server's collection: changes with every write."""


class _Chroma(ABC):
    """What a folder and a server have in common."""

    _graph: ClassVar["CreateHNSWConfiguration"] = {"space": "cosine"}

    def __init__(self, location: str) -> None:
        self.location = location
        self._client: Client | None = None
        self._collection: Collection | None = None
        self._words: WordFile | None = None
        self._lock = threading.RLock()

    @property
    def most(self) -> int:
        return self._opened().get_max_batch_size()

    def stamp(self) -> Stamp | None:
        collection = self._found()
        if collection is None:
            return None
        known = collection.metadata or {}
        return Stamp(known.get("schema", 0), known.get("embeddings", ""), known.get("dimension", 0))

    def create(self, stamp: Stamp) -> None:
        with index_errors(self.location):
            self._collection = self._opened().create_collection(
                COLLECTION,
                metadata=stamp._asdict(),
                configuration={"hnsw": self._graph},
                embedding_function=None,
            )

    def count(self) -> int:
        with index_errors(self.location):
            return self._existing().count()

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        collection, offset, ids = self._found(), 0, [""]
        while collection is not None and ids:
            with index_errors(self.location):
                ids = collection.get(limit=_IDS, offset=offset, include=[])["ids"]
            offset += len(ids)
            for start in range(0, len(ids), _PAGE):
                with index_errors(self.location):
                    page = ids[start : start + _PAGE]
                    got = collection.get(ids=page, include=["metadatas"])
                yield from zip(got["ids"], got["metadatas"] or (), strict=True)

    def get(self, ids: Sequence[str]) -> list[Document]:
        if not ids:
            return []
        with index_errors(self.location):
            got = self._existing().get(ids=list(ids), include=["documents", "metadatas"])
        rows = zip(got["ids"], got["documents"] or (), got["metadatas"] or (), strict=True)
        chunks = [
            Document(text or "", id=one, metadata=dict(known or {})) for one, text, known in rows
        ]
        return in_order(ids, chunks)

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[str]:
        conditions: list[Where] = [{"kind": where.kind}] if where.kind else []
        if where.by_source:
            sources = self._current_words().sources(where)
            if not sources:
                return []
            conditions.append(cast("Where", {"source": {"$in": sources}}))
        condition: Where | None = next(iter(conditions), None)
        if len(conditions) > 1:
            condition = {"$and": conditions}
        with index_errors(self.location):
            got = self._existing().query(
                query_embeddings=[vector], n_results=k, where=condition, include=[]
            )
        return got["ids"][0]

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[str]:
        return self._current_words().find(question, k, where)

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        with index_errors(self.location), self._saved(len(chunks)):
            self._existing().upsert(
                ids=[str(chunk.id) for chunk in chunks],
                embeddings=vectors,
                documents=[chunk.page_content for chunk in chunks],
                metadatas=[chunk.metadata for chunk in chunks],
            )
        self._written(Change(added=chunks))

    def remove(self, ids: Sequence[str]) -> None:
        with index_errors(self.location), self._saved(len(ids)):
            self._existing().delete(ids=list(ids))
        self._written(Change(removed=ids))

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        with index_errors(self.location), self._saved(len(changes)):
            self._existing().update(
                ids=[identifier for identifier, _ in changes],
                metadatas=[change for _, change in changes],
            )
        self._written(Change(amended=changes))

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                close_client(self._client)
            if self._words is not None:
                self._words.close()
            self._client = self._collection = self._words = None

    def _opened(self) -> "Client":
        with self._lock:
            if self._client is None:
                client = open_client(self.location)
                try:
                    self._collection = find_collection(client, self.location)
                    self._loaded()
                except DocumentIndexError:
                    self._collection = None
                    close_client(client)
                    raise
                self._client = client
            return self._client

    def _found(self) -> "Collection | None":
        self._opened()
        return self._collection

    def _existing(self) -> "Collection":
        collection = self._found()
        if collection is None:
            raise DocumentIndexError(self.location, "it was deleted while it was in use")
        return collection

    def _loaded(self) -> None:  # noqa: B027 - a server needs nothing
        """Prepare the collection that was just opened, if there is one."""

    def _saved(self, writes: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Prepare for a block that does so many writes; a server saves them by itself."""
        return nullcontext()

    @abstractmethod
    def _current_words(self) -> WordFile:
        """Return the words of the chunks that are there now."""

    @abstractmethod
    def _written(self, change: Change, /) -> None:
        """Follow a write."""


class ChromaFolder(_Chroma):
    """Chroma within this process, its files in a folder.

    Only one process writes at a time, and one that reads sees the vectors from when it opened the
    index.
    """

    _graph: ClassVar["CreateHNSWConfiguration"] = {"space": "cosine", "sync_threshold": NEVER}

    def __init__(self, location: str) -> None:
        self._folder = Path(location).expanduser().resolve()
        super().__init__(str(self._folder))
        self._writing = False
        self._limit = NEVER
        """After how many writes the graph's files are rewritten, as it was loaded."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and complete the words that a killed run left."""
        with sole_writer(self._folder):
            self.close()
            self._writing = True
            try:
                if self._found() is not None:
                    self._current_words()
                yield
                self.checkpoint(_FEWEST_UNSAVED)
            finally:
                self._writing = False
                self.close()

    def _found(self) -> "Collection | None":
        if self._client is None and not has_database(self._folder):
            return None
        return super()._found()

    def _opened(self) -> "Client":
        with self._lock:
            if self._client is not None:
                return self._client
            chunks, missing = 0, 0
            if self._writing and has_database(self._folder):
                chunks, missing = size(self._folder), unsaved(self._folder)
            self._limit = _most_unsaved(chunks) if self._writing else NEVER
            rewrites = missing >= self._limit
            with files_kept(self._folder) if rewrites else files_locked(self._folder):
                return super()._opened()

    def _loaded(self) -> None:
        if self._collection is not None:
            check_files(self._folder)
            with index_errors(self.location):
                load(self._collection, self._limit)

    @contextmanager
    def _saved(self, writes: int) -> Iterator[None]:
        """Keep the graph's files if the block's writes make Chroma rewrite them.

        The graph is in memory, so that saving it then costs a twentieth of loading it and applying
        the writes once more. An index that has grown is loaded again, to be saved less often.
        """
        self._existing()
        if unsaved(self._folder) + writes < self._limit:
            yield
            return
        try:
            with files_kept(self._folder):
                yield
        except BaseException:
            self.close()  # It may have open what the next to open it replaces by the copy.
            raise
        is_saved = unsaved(self._folder) < self._limit  # Not if the graph was new, or all deleted.
        if not is_saved or _most_unsaved(size(self._folder)) > 2 * self._limit:
            self.close()

    def _current_words(self) -> WordFile:
        """Return the words; those of an older crag, or of a killed run, are completed first."""
        with self._lock:
            if self._words is None:
                self._words = self._open_words()
            return self._words

    def _open_words(self) -> WordFile:
        path, mark = self._folder / "words.sqlite3", self._mark()
        if self._writing:
            return self._complete(WordFile(path, self.location), mark)
        words = WordFile.existing(path, self.location)
        if words is not None and words.mark == mark:
            return words
        try:
            with sole_writer(self._folder):
                return self._complete(WordFile(path, self.location), mark)
        except DocumentIndexError:  # Another run is writing, or nobody may.
            if words is not None and words.mark.startswith(str(self._existing().id)):
                return words
            return self._complete(WordFile(None, self.location), mark)

    def _complete(self, words: WordFile, mark: str) -> WordFile:
        words.follow(mark, self.stored(), self.get)
        return words

    def _mark(self) -> str:
        return f"{self._existing().id} {last_write(self._folder)}"

    def _written(self, change: Change, /) -> None:
        self._current_words().write(self._mark(), change)

    def checkpoint(self, fewest: int) -> None:
        """Save Chroma's graph of vectors if it is behind by at least `fewest` writes.

        Fewer are cheaper to apply at each opening than to save.
        """
        if has_database(self._folder) and unsaved(self._folder) >= fewest:
            self.close()
            save(self._folder)


class ChromaServer(_Chroma):
    """A Chroma server, for several machines and several writers at once.

    Every client keeps the words of the server's chunks in the folder of the user's cache, and
    completes them when it searches after a write.
    """

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let others write at the same time; the clients complete their words afterwards.

        A removal that a killed client asked for may be in the server's log and not be done: what it
        removes is shown until the next write. So that it does not count as stored, an empty write
        comes first.
        """
        try:
            collection = self._found()
            if collection is not None:
                with index_errors(self.location):
                    collection.delete(ids=[uuid.uuid4().hex])
                self._written(Change())
            yield
        finally:
            self.close()

    def _current_words(self) -> WordFile:
        with self._lock:
            self._collection = find_collection(self._opened(), self.location)
            if self._words is None:
                self._words = WordFile(cached_words(self.location), self.location)
            change = (self._existing().metadata or {}).get(_CHANGE, "")
            mark = f"{self._existing().id} {change}"
            self._words.follow(mark, self.stored(), self.get)
            return self._words

    def _written(self, _change: Change, /) -> None:
        collection = self._existing()
        metadata = {**(collection.metadata or {}), _CHANGE: uuid.uuid4().hex}
        with index_errors(self.location):
            collection.modify(metadata=metadata)


def _most_unsaved(chunks: int) -> int:
    """Return after how many writes to save the graph of an index of so many chunks.

    With every write Chroma reads again all that are unsaved, 12 µs each, and saving takes some 4 µs
    for each chunk that there is. Writes being 1024 chunks, both together cost least near this.
    """
    return max(_LEAST_SAVED, _SAVED_PER_ROOT * isqrt(chunks))
