"""The index of the user's documents: texts and the chunks of them, in two tables of SQL.

Chunks of one `text_key` share a text, with its words and its vector. Queries are written once, with
`:name` for values; a back end says in its `dialect` what its database calls otherwise.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import TypedDict

from crag.documents.sources import digest, file_of, name_of
from crag.errors import DocumentIndexError, IndexNotFoundError
from crag.index.ranking import Passage, Term, find
from crag.settings import FindBy
from crag.text.words import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 500 + VERSION
"""Version of the stored format, and of the words in it."""
MOST_PLACES = 20
"""Other places of a text that are told."""
Run = Callable[..., list[Any]]
"""Runs a query with values by name, and returns its rows."""
_DECIMALS = 6
PAGE = 10_000
_CHUNKS = "SELECT id, text, CAST(metadata AS text), place FROM crag_chunks JOIN crag_texts"
_STORED = f"""
{_CHUNKS} USING (number) WHERE place > :last AND {{condition}} ORDER BY place LIMIT {PAGE}
"""
_DOCUMENT = f"""
{_CHUNKS} USING (number) WHERE number IN (SELECT CAST(value AS bigint) FROM {{each}})
ORDER BY NOT ({{condition}}), number <> :first, place LIMIT {MOST_PLACES + 1}
"""  # noqa: S608 - of constants
_KEYS = "SELECT key FROM crag_texts WHERE key IN (SELECT value FROM {each})"
_PASSAGES = """
SELECT number, heading, text, {vector} FROM crag_texts
WHERE number IN (SELECT CAST(value AS bigint) FROM {each})
"""
_REMOVE = "DELETE FROM crag_chunks WHERE id IN (SELECT value FROM {each}) RETURNING number"
_REMOVE_TEXTS = """
DELETE FROM crag_texts WHERE number IN (SELECT CAST(value AS bigint) FROM {each})
AND NOT EXISTS (SELECT 1 FROM crag_chunks WHERE crag_chunks.number = crag_texts.number)
"""
_ADD_CHUNK = """
INSERT INTO crag_chunks (id, number, metadata)
VALUES (:id, (SELECT number FROM crag_texts WHERE key = :key), {new})
"""


class Stamp(NamedTuple):
    """What an index was created with."""

    schema: int
    embeddings: str
    """Name of the embedding model."""
    dimension: int
    """Length of its vectors."""


class IndexedFile(TypedDict):
    """A file of an index."""

    path: str
    name: str
    """The path within the folder that was indexed: what people call it."""
    title: str
    chunks: int


@dataclass
class Entry:
    """The content of the index from one source."""

    position: str
    """Metadata of its first chunk, as what follows."""
    content_hash: str
    ids: list[str] = field(default_factory=list)


class DocumentIndex(AbstractContextManager["DocumentIndex"]):
    """Stores chunks and the texts that they have, and finds texts by vector and by words.

    `crag.index.open_index` returns one. It opens on first use, and again after `close`; opening for
    reading does not create it. A killed process leaves an index that opens, with all of a write or
    nothing of it. Methods that read are called from several threads at once, and see what other
    processes have written.

    Raises:
        DocumentIndexError: from every method, when the index cannot be used; its subclass
            `IndexNotFoundError` says that there is none.
    """

    location: str
    """The absolute path, or the URL as it may be shown: without secrets."""
    dialect: Mapping[str, str]
    """What stands for the names in braces of queries."""
    by_words_query: str
    """Finds the numbers of the `:k` texts that match `:terms` best, among `{numbers}`."""
    _checked = False

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def stamp(self) -> Stamp | None:
        """Return what the index was created with, or None if there is none; creates nothing."""

    @abstractmethod
    def create(self, stamp: Stamp) -> None:
        """Create the index; only called within `writing`, when there is none."""

    @abstractmethod
    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[int]:
        """Return the numbers of the `k` texts nearest by cosine, nearest first."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Keep other runs from writing, repair what a killed one left, and save at the end.

        Raises:
            DocumentIndexError: another run is writing.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the index; it reopens on use."""

    @abstractmethod
    def transaction(self, *, writes: bool = False) -> AbstractContextManager[Run]:
        """Give what runs queries, all of them or none; what they raise is translated."""

    @abstractmethod
    def add_text(
        self, run: Run, key: str, heading: str, text: str, vector: "NDArray[np.float32]"
    ) -> None:
        """Store a text that is new, with its words and its vector."""

    @staticmethod
    @abstractmethod
    def vector_of(stored: Any) -> "NDArray[np.float32]":
        """Return a vector as it was stored."""

    @staticmethod
    @abstractmethod
    def matching(terms: Sequence[Term]) -> str:
        """Return the expression of the database that any of the terms matches."""

    def exists(self) -> bool:
        """Return whether the index exists, empty or not."""
        stamp = self.stamp()
        if stamp is None:
            return False
        if stamp.schema != SCHEMA:
            problem = "it was built by another version of crag. Delete it and index again"
            raise DocumentIndexError(self.location, problem)
        if stamp.embeddings != (in_use := embedding_name(self.embeddings)):
            raise self._of_another_model(stamp.embeddings, in_use)
        return True

    def open(self) -> Self:
        """Open the index now instead of on first use, and return it."""
        if not self.exists():
            raise IndexNotFoundError(self.location)
        if not self.count():
            raise IndexNotFoundError(self.location, "it is empty")
        self._checked = True
        return self

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self.rows("SELECT count(*) FROM crag_chunks")[0][0])

    def stored(self, folder: str = "") -> Iterator[Document]:
        """Yield the chunks of a folder, or all, as they were stored; none if there is no index."""
        if not self.exists():
            return
        condition, values = _condition(folder)
        last = 0
        while rows := self.rows(_STORED, condition, last=last, **values):
            last = rows[-1][3]
            yield from map(_chunk, rows)

    def files(self) -> list[IndexedFile]:
        """Return the files, whose records may be documents, by path; none without an index."""
        files: dict[str, IndexedFile] = {}
        for metadata in (chunk.metadata for chunk in self.stored()):
            path = file_of(metadata["source"], metadata["position"])
            name, title = name_of(path, metadata.get("root", "")), metadata["title"]
            new = IndexedFile(path=path, name=name, title=title, chunks=0)
            files.setdefault(path, new)["chunks"] += 1
        return [files[path] for path in sorted(files)]

    def entries(self, paths: Iterable[Path]) -> dict[str, Entry]:
        """Read what the index has of files and folders, by source."""
        found: dict[str, Entry] = {}
        stored = chain(*(self.stored(str(path)) for path in paths))
        for identifier, known in {one.id: one.metadata for one in stored}.items():
            new = Entry(known["position"], known["content_hash"])
            found.setdefault(known["source"], new).ids.append(str(identifier))
        return found

    def search(
        self, question: str, k: int = 10, *, by: FindBy = "both", folder: str = ""
    ) -> list[Document]:
        """Return the `k` chunks that serve a question best, best first.

        `by` both, what is near in meaning and what has the rare words of the question get one
        score; see `crag.index.ranking`. Texts that are equal are returned once, with all their
        places in the metadata `also`.
        """
        if not self._checked:
            self.open()
        return find(self, question, k, by, folder)

    def by_words(self, terms: Sequence[Term], k: int, folder: str = "") -> list[int]:
        """Return the `k` texts that have most of the terms, rare ones most, best first."""
        if not terms:
            return []
        numbers, values = among(folder)
        query = self.by_words_query.replace("{numbers}", numbers)
        rows = self.rows(query, terms=self.matching(terms), k=k, **values)
        return [number for (number,) in rows]

    def holders(self, terms: Sequence[Term]) -> tuple[int, list[int]]:
        """Return the number of texts, and how many have each of the terms."""
        query = "SELECT count(*) FROM {matches}"
        total = self.rows("SELECT count(*) FROM crag_texts")[0][0]
        return total, [self.rows(query, terms=self.matching([term]))[0][0] for term in terms]

    def passages(self, numbers: Sequence[int], vector: Sequence[float]) -> list[Passage]:
        """Return texts by number, in any order; without a vector, each cosine is 0."""
        import numpy as np

        rows = self.rows(_PASSAGES, values=json.dumps(list(numbers)))
        if not rows or not len(vector):
            return [Passage(*row[:3]) for row in rows]
        asked = unit(np.asarray(vector, np.float32))
        near = cosines(np.stack([self.vector_of(row[3]) for row in rows]), asked).tolist()
        return [Passage._make([*row[:3], one]) for row, one in zip(rows, near, strict=True)]

    def document(self, numbers: Sequence[int], folder: str = "") -> Document | None:
        """Return a chunk of texts that are as one, the first in the folder; None if they are gone.

        The other places are in the metadata `also`.
        """
        condition, values = _condition(folder)
        each = json.dumps(list(numbers))
        rows = self.rows(_DOCUMENT, condition, values=each, first=numbers[0], **values)
        chunks = list(map(_chunk, rows))
        known = (one.metadata for one in chunks)
        places = dict.fromkeys((one["source"], one.get("position", "")) for one in known)
        also = [{"source": source, "position": position} for source, position in places][1:]
        if also:
            chunks[0].metadata["also"] = also
        return chunks[0] if chunks else None

    def write(
        self,
        chunks: Sequence[Document] = (),
        vectors: Sequence[Any] = (),
        removed: Sequence[str] = (),
    ) -> None:
        """Write and remove chunks, all of it or nothing; it is durable when the method returns.

        Those without vectors are embedded, but for texts that the index has. A chunk with a known
        id replaces the old one; unknown ids of `removed` are ignored. Only called within `writing`.
        """
        import numpy as np

        replaced = [*removed, *(str(chunk.id) for chunk in chunks)]
        if not replaced:
            return
        keys = list(map(text_key, chunks))
        rows = self.rows(_KEYS, values=json.dumps(keys)) if self.exists() else []
        known = {key for (key,) in rows}
        new = {key: at for at, key in enumerate(keys) if key not in known}
        if len(vectors) == len(chunks):
            made = [vectors[at] for at in new.values()]
        else:
            made = embedded([chunks[at] for at in new.values()], self.embeddings)
        if new:
            self._expect(len(made[0]))
        with self.transaction(writes=True) as run:
            touched = run(_REMOVE, values=json.dumps(replaced))
            for (key, at), vector in zip(new.items(), made, strict=True):
                names = map(chunks[at].metadata.get, ("title", "section"))
                heading = " ".join(filter(None, names))
                length_one = unit(np.asarray(vector, np.float32))
                self.add_text(run, key, heading, chunks[at].page_content, length_one)
            for key, chunk in zip(keys, chunks, strict=True):
                run(_ADD_CHUNK, id=chunk.id, key=key, new=json.dumps(chunk.metadata))
            numbers = list({number for (number,) in touched})
            run(_REMOVE_TEXTS, values=json.dumps(numbers))

    def _expect(self, dimension: int) -> None:
        """Create the index if there is none; vectors of another length are refused."""
        stamp, there = Stamp(SCHEMA, embedding_name(self.embeddings), dimension), self.stamp()
        if there is None:
            self.create(stamp)
        elif there != stamp:
            sizes = (f"{one.embeddings} of {one.dimension} dimensions" for one in (there, stamp))
            raise self._of_another_model(*sizes)

    def _of_another_model(self, made_with: str, in_use: str) -> DocumentIndexError:
        problem = f"it was built with the embedding model {made_with!r}, but {in_use!r} is in use"
        fix = "Set CRAG_EMBEDDING_MODEL to the former, choose another --index, or delete this one"
        return DocumentIndexError(self.location, f"{problem}. {fix} and index again")

    def rows(self, query: str, condition: str = "", **values: Any) -> list[Any]:
        """Return what a query finds in chunks of a `condition`."""
        with self.transaction() as run:
            return run(query.replace("{condition}", condition), **values)


def embedded(chunks: Sequence[Document], embeddings: Embeddings) -> "list[NDArray[np.float32]]":
    """Return vectors in the order of `chunks`."""
    import numpy as np

    from crag.documents.chunks import text_to_embed

    if not chunks:
        return []
    texts = list(map(text_to_embed, chunks))
    return list(np.asarray(embeddings.embed_documents(texts), np.float32))


def embedding_name(embeddings: Embeddings) -> str:
    """Return the name of an embedding model, or of its class."""
    for attribute in ("name", "model_name", "model"):
        name = getattr(embeddings, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(embeddings).__name__


def among(folder: str) -> tuple[str, dict[str, str]]:
    """Return a condition on the numbers of texts, and its values."""
    condition, values = _condition(folder)
    within = f"number IN (SELECT number FROM crag_chunks WHERE {condition})"  # noqa: S608 - of constants
    return within if folder else condition, values


def _condition(folder: str) -> tuple[str, dict[str, str]]:
    r"""Return a condition on the table of chunks, made of constants, and its values.

    The folder is an absolute path, of a folder or a file; or the end or middle of one, such as
    ``api/v2``. Values are patterns of SQL's LIKE, with the escape ``\``.
    """
    if not folder:
        return "true", {}
    path = PurePath(folder).as_posix().strip("/")
    escaped = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    start = "/" if PurePath(folder).is_absolute() else "%/"
    ends = ("", "/%", "#%") if path else ("%",)
    values = {f"path{n}": f"{start}{escaped}{end}" for n, end in enumerate(ends)}
    sources = " OR ".join(rf"source LIKE :{name} ESCAPE '\'" for name in values)
    return f"({sources})", values


def _chunk(row: Sequence[Any]) -> Document:
    return Document(row[1], id=row[0], metadata=json.loads(row[2]))


def text_key(chunk: Document) -> str:
    """Return what chunks have in common that are stored, embedded and found as one text."""
    known = chunk.metadata
    parts = (known.get("title"), known.get("section"), chunk.page_content)
    return digest(*(str(part or "") for part in parts))


def cosines(vectors: "NDArray[np.float32]", asked: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the cosine of each row and a vector, all of length one.

    They are rounded, so that equal vectors are in the order of their numbers. `@` would wake the
    threads of BLAS, which then stay awake and take the processor time of half an evaluation.
    """
    import numpy as np

    products: NDArray[np.float32] = np.einsum("ij,j->i", vectors, asked)
    return products.round(_DECIMALS)


def unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1, so that their products are cosines."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def sentence_of(error: Exception) -> str:
    """Return what an error says, on one line, with the full stop of a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."
