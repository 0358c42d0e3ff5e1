"""Qdrant as the index: a server, or its embedded form in a folder.

Points have the payload of LangChain's `QdrantVectorStore` (page_content, metadata), so that other
LangChain programs search the same collection. Qdrant ranks by words only with sparse vectors of
another model, so that the words are in a `WordFile`: beside the points of a folder, and in the
user's cache for a server.
"""

import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.extras import require
from crag.retrieval.backends.checkpoint import sole_writer
from crag.retrieval.backends.word_file import WordFile, cached_words
from crag.retrieval.index import EVERYTHING, Filter, Stamp, safe_location, sentence_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter as QdrantFilter
    from qdrant_client.models import Record, ScoredPoint

COLLECTION = "crag"
_MOST, _PAGE = 500, 1000
_TIMEOUT = 60
_CHANGE = "change"
"""Metadata of the collection: changes with every write."""
_NAMES = uuid.UUID("6b1cb8f2-2d33-5c6f-9e0a-3b1a0c6a7d11")
"""Points are numbered by UUIDs, which are made of the chunks' ids within this namespace."""


class _Folder:
    """The one client that a process may have of a folder, shared by all indexes there."""

    opened: dict[Path, "_Folder"] = {}  # noqa: RUF012 - shared on purpose
    guard = threading.Lock()

    def __init__(self, client: "QdrantClient") -> None:
        self.client, self.users, self.lock = client, 0, threading.RLock()


class Qdrant:
    """A Qdrant collection at ``qdrant://HOST:6333``, ``qdrant+https://HOST``, or in a folder.

    A folder is ``qdrant://`` and an absolute path, or one that begins with ``./``. One process uses
    it at a time; a server serves several. A server's key is taken from QDRANT_API_KEY.
    """

    most = _MOST

    def __init__(self, location: str) -> None:
        require("qdrant", "an index in Qdrant", "qdrant_client")
        scheme, _, rest = location.partition("://")
        self._folder = (
            Path(rest).expanduser().resolve() if rest.startswith(("/", ".", "~")) else None
        )
        secure = scheme.lower() == "qdrant+https"
        self._url = f"{'https' if secure else 'http'}://{rest}"
        self.location = str(self._folder or safe_location(location))
        self._client: QdrantClient | None = None
        self._words: WordFile | None = None
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        known = self._metadata()
        if known is None:
            return None
        return Stamp(known.get("schema", 0), known.get("embeddings", ""), known.get("dimension", 0))

    def create(self, stamp: Stamp) -> None:
        """Create the collection, with an index of what is filtered by."""
        from qdrant_client.models import Distance, PayloadSchemaType, VectorParams

        with self._using() as client:
            client.create_collection(
                COLLECTION,
                vectors_config=VectorParams(size=stamp.dimension, distance=Distance.COSINE),
                metadata=stamp._asdict(),
            )
            if self._folder is None:  # The embedded form searches without.
                for name in ("metadata.source", "metadata.kind", "id"):
                    client.create_payload_index(COLLECTION, name, PayloadSchemaType.KEYWORD)

    def count(self) -> int:
        """Return the number of chunks."""
        with self._using() as client:
            return client.count(COLLECTION, exact=True).count

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk."""
        offset: Any = None
        while True:
            with self._using() as client:
                points, offset = client.scroll(
                    COLLECTION, limit=_PAGE, offset=offset, with_payload=["id", "metadata"]
                )
            for point in points:
                payload = point.payload or {}
                yield payload["id"], payload["metadata"]
            if offset is None:
                return

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by id."""
        if not ids:
            return []
        with self._using() as client:
            points = client.retrieve(COLLECTION, [_point(one) for one in ids])
        found = {chunk.id: chunk for chunk in map(_chunk, points)}
        return [found[identifier] for identifier in ids if identifier in found]

    def by_vector(
        self, vector: Sequence[float], k: int, where: Filter = EVERYTHING
    ) -> list[Document]:
        """Return the nearest chunks."""
        sources: list[str] | None = None
        if where.by_source:
            sources = self._current_words().sources(where)
            if not sources:
                return []
        with self._using() as client:
            found = client.query_points(
                COLLECTION, query=list(vector), limit=k, query_filter=_condition(where, sources)
            )
        return list(map(_chunk, found.points))

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[Document]:
        """Return the chunks that share the rarest words."""
        return self.get(self._current_words().find(question, k, where))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock a folder; a server takes several writers at once."""
        with sole_writer(self._folder) if self._folder else nullcontext():
            try:
                yield
            finally:
                self.close()

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Store chunks in one request."""
        from qdrant_client.models import PointStruct

        points = [
            PointStruct(
                id=_point(str(chunk.id)),
                vector=vector,
                payload={
                    "id": chunk.id,
                    "page_content": chunk.page_content,
                    "metadata": chunk.metadata,
                },
            )
            for chunk, vector in zip(chunks, vectors.tolist(), strict=True)
        ]
        with self._changing() as client:
            client.upsert(COLLECTION, points)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove chunks in one request."""
        with self._changing() as client:
            client.delete(COLLECTION, [_point(one) for one in ids])

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change metadata, chunk by chunk."""
        with self._changing() as client:
            for identifier, change in changes:
                client.set_payload(COLLECTION, dict(change), [_point(identifier)], key="metadata")

    def close(self) -> None:
        """Close the client; it reopens on use."""
        with self._lock:
            if self._words is not None:
                self._words.close()
            if self._client is not None:
                self._leave(self._client)
            self._client = self._words = None

    def _metadata(self) -> dict[str, Any] | None:
        if self._folder and not (self._folder / "meta.json").is_file():
            return None
        with self._using() as client:
            if not client.collection_exists(COLLECTION):
                return None
            return dict(client.get_collection(COLLECTION).config.metadata or {})

    @contextmanager
    def _changing(self) -> "Iterator[QdrantClient]":
        """Mark the collection before and after a write, for a process killed in between too."""
        with self._using() as client:
            client.update_collection(COLLECTION, metadata=self._marked())
            yield client
            client.update_collection(COLLECTION, metadata=self._marked())

    def _marked(self) -> dict[str, Any]:
        return {**(self._metadata() or {}), _CHANGE: uuid.uuid4().hex}

    def _current_words(self) -> WordFile:
        with self._lock:
            mark = str((self._metadata() or {}).get(_CHANGE, ""))
            if self._words is None:
                path = self._folder / "words.sqlite3" if self._folder else None
                self._words = WordFile(path or cached_words(self.location), self.location)
            if self._words.mark != mark:
                self._words.follow(mark, self.stored(), self.get)
            return self._words

    @contextmanager
    def _using(self) -> "Iterator[QdrantClient]":
        """Open the client if necessary, and translate errors; the embedded form takes turns."""
        from qdrant_client.http.exceptions import ApiException

        try:
            with self._lock:
                if self._client is None:
                    self._client = self._open()
                client = self._client
            if self._folder is None:
                yield client
                return
            with _Folder.opened[self._folder].lock:
                yield client
        except (ApiException, OSError, RuntimeError, ValueError) as error:
            if isinstance(error, DocumentIndexError):
                raise
            raise DocumentIndexError(self.location, _advised(error)) from error

    def _open(self) -> "QdrantClient":
        from qdrant_client import QdrantClient

        if self._folder is None:
            key = os.environ.get("QDRANT_API_KEY")
            return QdrantClient(
                url=self._url, api_key=key, timeout=_TIMEOUT, check_compatibility=False
            )
        with _Folder.guard:
            shared = _Folder.opened.get(self._folder)
            if shared is None:
                client = QdrantClient(path=str(self._folder), force_disable_check_same_thread=True)
                shared = _Folder.opened[self._folder] = _Folder(client)
            shared.users += 1
            return shared.client

    def _leave(self, client: "QdrantClient") -> None:
        if self._folder is None:
            client.close()
            return
        with _Folder.guard:
            shared = _Folder.opened[self._folder]
            shared.users -= 1
            if not shared.users:
                del _Folder.opened[self._folder]
                shared.client.close()


def _advised(error: Exception) -> str:
    said = sentence_of(error)
    if "already accessed" in said:
        return "another process uses it. End that one, or use a Qdrant server: qdrant://HOST:6333"
    return f"{said} Is Qdrant running, and is this its address?"


def _point(identifier: str) -> str:
    return str(uuid.uuid5(_NAMES, identifier))


def _chunk(point: "Record | ScoredPoint") -> Document:
    known = point.payload or {}
    return Document(known["page_content"], id=known["id"], metadata=dict(known["metadata"]))


def _condition(where: Filter, sources: Sequence[str] | None) -> "QdrantFilter | None":
    from qdrant_client.models import FieldCondition, MatchAny, MatchValue
    from qdrant_client.models import Filter as QdrantFilter

    conditions: list[Any] = []
    if where.kind:
        match = MatchValue(value=where.kind)
        conditions.append(FieldCondition(key="metadata.kind", match=match))
    if sources is not None:
        among = MatchAny(any=list(sources))
        conditions.append(FieldCondition(key="metadata.source", match=among))
    return QdrantFilter(must=conditions) if conditions else None
