"""Self-RAG with passages from the web: introductions of Wikipedia's articles beside the documents.

Self-RAG's authors add five documents of a web search, restricted to the English Wikipedia, for
Biography and open questions, and take the introduction of each article (Self-RAG, Sec. 4.2). Their
files for PopQA and TriviaQA have such passages already, that of Biography has none.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from crag.correction.queries import cut
from crag.errors import CragError
from crag.graph import build_self_rag
from crag.graph.opening import Graph
from crag.papers.bench.corpus import HOST
from crag.papers.released.rules import ReleasedRules
from crag.parts import Hit, Parts, WebSearcher
from crag.text.urls import is_wikipedia

DOCUMENTS, INTRODUCTIONS = 5, 5
"""Passages from the retriever, and from the web."""
_ASKED, _LONGEST = 15, 1200


def build_self_rag_web(parts: Parts) -> Graph:
    """Compile Self-RAG with five documents and five introductions; it needs `k` of 10 or more.

    Raises:
        CragError: the parts hold no searcher.
    """
    if parts.searcher is None:
        raise CragError("self_rag_web searches Wikipedia: give Parts(searcher=…)")
    return build_self_rag(
        replace(parts, retriever=WithIntroductions(base=parts.retriever, searcher=parts.searcher)),
        rules=ReleasedRules(),
    )


class WithIntroductions(BaseRetriever):
    """The first documents of another retriever, then what a search finds on Wikipedia."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: BaseRetriever
    searcher: WebSearcher

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = self.base.invoke(query, config={"callbacks": run_manager.get_child()})
        return [*documents[:DOCUMENTS], *introductions(self.searcher.search(query, _ASKED))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        documents = await self.base.ainvoke(query, config=config)  # type: ignore[arg-type]
        hits = await asyncio.to_thread(self.searcher.search, query, _ASKED)
        return [*documents[:DOCUMENTS], *introductions(hits)]


def introductions(hits: Sequence[Hit]) -> list[Document]:
    """Return the introduction of each article found, at most five.

    A file that is searched instead of the web counts as Wikipedia.
    """
    articles = [hit for hit in hits if is_wikipedia(hit.url) or hit.url.startswith(HOST)]
    texts = [(hit, cut((hit.text or hit.snippet).strip(), _LONGEST)) for hit in articles]
    return [
        Document(text, metadata={"title": hit.title, "url": hit.url}) for hit, text in texts if text
    ][:INTRODUCTIONS]
