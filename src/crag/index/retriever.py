"""The index as LangChain's retriever."""

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor

from crag.index.store import DocumentIndex
from crag.settings import FindBy


class IndexRetriever(BaseRetriever):
    """Retrieve the `k` chunks that serve a question best, found by words and by meaning.

    ``invoke(question, k=…, find_by=…, folder=…)`` changes what is set for one call; the graphs pass
    their settings of these names. The index opens on the first question, and again if it was closed
    in between. It is thread-safe. The metadata of a chunk are `source`, `title`, `position`,
    `lines`, `chunk` (its number), `root`, `content_hash`, and optionally `url` and `section`.

    Raises:
        DocumentIndexError: on retrieval, if the index cannot be used, or is missing or empty.
    """

    index: DocumentIndex
    search_kwargs: dict[str, Any]
    """What is set for all calls."""
    run_settings: tuple[str, ...] = ("k", "find_by", "folder")
    """The settings of a run that `invoke` takes."""

    def __init__(self, index: DocumentIndex, k: int = 10, find_by: FindBy = "both") -> None:
        fields: dict[str, Any] = {"index": index, "search_kwargs": {"k": k, "find_by": find_by}}
        super().__init__(**fields)

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the embedding model reads, by ISO 639-1 code; empty if unknown."""
        return frozenset(getattr(self.index.embeddings, "languages", ()))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changed: Any
    ) -> list[Document]:
        del run_manager
        options = self.search_kwargs | changed
        folder = str(options.get("folder") or "")
        return self.index.search(query, options["k"], by=options["find_by"], folder=folder)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changed: Any
    ) -> list[Document]:
        manager = run_manager.get_sync()
        return await run_in_executor(
            None, self._get_relevant_documents, query, run_manager=manager, **changed
        )
