"""Find documents for the question."""

from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import TypedDict

from crag.events import Event, event
from crag.runtime.attempt import Attempt, ignored_filters, options_of
from crag.runtime.languages import unread
from crag.runtime.replies import documents_of
from crag.runtime.waiting import call, compute
from crag.settings import Settings
from crag.state import State
from crag.text.spelling import respelled


class RetrieveUpdate(TypedDict):
    """Written by `retrieve`."""

    documents: list[Document]
    events: list[Event]
    question: NotRequired[str]
    """Written if it was respelled."""


class _Found(NamedTuple):
    """What a question found, and what went wrong."""

    question: str
    documents: list[Document]
    events: list[Event]


@dataclass(frozen=True)
class Retrieve:
    """Ask the retriever for the k best documents.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

    If the question has typing errors, by the words of what it found, documents are found again for
    the question without them, and all that follows is done for that.

    A reranker orders `Settings.rerank_from` documents, of which the k best go on. If it fails,
    the retriever's order stays.
    """

    retriever: BaseRetriever
    reranker: BaseDocumentCompressor | None = None

    async def run(self, state: State, settings: Settings) -> RetrieveUpdate:
        """Write the documents, best first."""
        found = await self._found(state["question"], settings)
        # The model that tells languages is read from disk when it is first needed.
        if (meant := await compute(_respelled, found, settings)) != found.question:
            again = await self._found(meant, settings)
            found = again if again.documents else found
        return self._update(state["question"], found, settings)

    async def _found(self, question: str, settings: Settings) -> _Found:
        documents: list[Document] = []
        retriever, reranker = self.retriever, self.reranker
        with Attempt("retriever") as attempt:
            options = self._options(settings)
            reply = await call(retriever.invoke, retriever.ainvoke, question, **options)
            documents = documents_of(reply, self._most(settings))
        reranking = Attempt("reranker")
        if reranker and documents:
            with reranking:
                reranked = await call(
                    reranker.compress_documents, reranker.acompress_documents, documents, question
                )
                documents = documents_of(reranked, settings.k, "reranker")
        return _Found(question, documents[: settings.k], _events(documents, attempt, reranking))

    def _options(self, settings: Settings) -> dict[str, Any]:
        options = options_of(self.retriever, settings)
        return options | {"k": self._most(settings)} if "k" in options else options

    def _most(self, settings: Settings) -> int:
        """Return how many documents the retriever is asked for."""
        return max(settings.k, settings.rerank_from) if self.reranker else settings.k

    def _update(self, question: str, found: _Found, settings: Settings) -> RetrieveUpdate:
        unread_question = unread("retrieve", self.retriever, found.question)
        events = self._ignored(settings) + unread_question + found.events
        update = RetrieveUpdate(documents=found.documents, events=events)
        if found.question != question:
            detail = f"the question is read as {found.question!r}"
            events.append(event("question_respelled", "retrieve", detail))
            update["question"] = found.question
        return update

    def _ignored(self, settings: Settings) -> list[Event]:
        names: list[str] = []
        with Attempt("retriever"):
            names = ignored_filters(self.retriever, settings)
        if not names:
            return []
        detail = f"the retriever {type(self.retriever).__name__} takes no {', '.join(names)}"
        return [event("filter_ignored", "retrieve", detail, "search all documents")]


def _respelled(found: _Found, settings: Settings) -> str:
    """Return the question without typing errors; tasks of the papers take it as it is."""
    if not settings.respell:
        return found.question
    return respelled(found.question, [document.page_content for document in found.documents])


def _events(found: list[Document], attempt: Attempt, reranking: Attempt) -> list[Event]:
    fallback = "continue as if nothing relevant was retrieved"
    if attempt.error is not None:
        return [event("retrieval_failed", "retrieve", attempt.error, fallback)]
    if reranking.error is not None:
        kept = "keep the order of the retriever"
        return [event("reranker_failed", "retrieve", reranking.error, kept)]
    if not found:
        detail = "the retriever found no document"
        return [event("nothing_retrieved", "retrieve", detail, fallback)]
    return []
