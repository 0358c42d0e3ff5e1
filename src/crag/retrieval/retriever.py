"""The index as LangChain's retriever."""

from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from crag.retrieval.chroma import index_errors
from crag.retrieval.store import DocumentIndex


class IndexRetriever(VectorStoreRetriever):
    """Retrieve the `k` chunks nearest to a question; ``invoke(question, k=…)`` takes another k.

    The index opens on the first question, and again if it was closed in between. It is thread-safe.
    The metadata of a chunk are `source`, `title`, `position`, `start` (its offset), `chunk` of
    `chunks`, `root`, `content_hash`, and optionally `url` and `section`.

    Raises:
        DocumentIndexError: on retrieval, if the index cannot be used, or is missing or empty.
    """

    def __init__(self, index: DocumentIndex, k: int = 10) -> None:
        super().__init__(vectorstore=IndexStore(index), search_kwargs={"k": k})


class IndexStore(VectorStore):
    """A `DocumentIndex` as a read-only LangChain vector store."""

    def __init__(self, index: DocumentIndex) -> None:
        self._index = index

    @property
    def embeddings(self) -> Embeddings:
        """The embedding model of the index."""
        return self._index.embeddings

    def similarity_search(self, query: str, k: int = 10, **kwargs: Any) -> list[Document]:
        """Return the `k` nearest chunks, nearest first."""
        chroma = self._index.chroma()
        with index_errors(self._index.location):
            return chroma.similarity_search(query, k, **kwargs)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Raise, because the index is filled from files.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("fill an index with crag.retrieval.index_paths")
