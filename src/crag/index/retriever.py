"""The index as LangChain's retriever."""

from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from crag.finding import FindBy
from crag.index.contract import checked_way, filter_of
from crag.index.store import DocumentIndex
from crag.text.language import languages_of


class IndexRetriever(VectorStoreRetriever):
    """Retrieve the `k` chunks that serve a question best, found by words and by meaning.

    ``invoke(question, k=…, find_by=…, folder=…, kind=…, since=…, until=…)`` changes what is set for
    one call; the graphs pass their settings of these names. The index opens on the first question,
    and again if it was closed in between. It is thread-safe. The metadata of a chunk are `source`,
    `title`, `position`, `start` (its offset), `chunk` of `chunks`, `root`, `content_hash`,
    `modified` (a day), and optionally `url` and `section`.

    Raises:
        DocumentIndexError: on retrieval, if the index cannot be used, or is missing or empty.
        SettingsError: a way of finding, or a day, is wrong.
    """

    run_settings: tuple[str, ...] = ("k", "find_by", "folder", "kind", "since", "until")
    """The settings of a run that `invoke` takes."""

    def __init__(self, index: DocumentIndex, k: int = 10, find_by: FindBy = "both") -> None:
        search_kwargs = {"k": k, "find_by": find_by}
        super().__init__(vectorstore=IndexStore(index), search_kwargs=search_kwargs)

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the embedding model reads, by ISO 639-1 code; empty if unknown."""
        return languages_of(self.vectorstore.embeddings)


class IndexStore(VectorStore):
    """A `DocumentIndex` as a read-only LangChain vector store."""

    def __init__(self, index: DocumentIndex) -> None:
        self._index = index

    @property
    def embeddings(self) -> Embeddings:
        """The embedding model of the index."""
        return self._index.embeddings

    def similarity_search(
        self, query: str, k: int = 10, *, find_by: str = "both", **filters: Any
    ) -> list[Document]:
        """Return the `k` best chunks, best first; `filters` are those of `filter_of`."""
        way, where = checked_way(find_by), filter_of(**filters)
        return self._index.search(query, k, by=way, where=where)

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
        raise NotImplementedError("fill an index with crag.index.index_paths")
