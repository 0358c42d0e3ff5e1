"""Find documents for the question."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NotRequired

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import TypedDict

from crag.events import Event, event
from crag.runtime.calls import Attempt, options_of, plain_documents
from crag.settings import Settings
from crag.state import State
from crag.text.language import reads
from crag.text.spelling import respelled

_NOTHING = "continue as if nothing relevant was retrieved"


class RetrieveUpdate(TypedDict):
    """Written by `retrieve`."""

    documents: list[Document]
    events: list[Event]
    question: NotRequired[str]
    """Written if it was respelled."""


@dataclass(frozen=True)
class Retrieve:
    """Ask the retriever for the k best documents.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

    If the question has typing errors, by the words of what it found, documents are found again for
    the question without them, and all that follows is done for that, unless it finds nothing.
    """

    retriever: BaseRetriever

    def run(self, state: State, settings: Settings) -> RetrieveUpdate:
        """Write the documents, best first."""
        found = self._find(state["question"], settings)
        meant = _respelled(state["question"], found, settings)
        if meant != state["question"]:
            found = _better(found, self._find(meant, settings), meant)
        return self._with_language(found, meant)

    async def arun(self, state: State, settings: Settings) -> RetrieveUpdate:
        """Do the same, awaiting the retriever."""
        found = await self._afind(state["question"], settings)
        # The model that tells languages is read from disk when it is first needed.
        meant = await asyncio.to_thread(_respelled, state["question"], found, settings)
        if meant != state["question"]:
            found = _better(found, await self._afind(meant, settings), meant)
        return self._with_language(found, meant)

    def _find(self, question: str, settings: Settings) -> RetrieveUpdate:
        with Attempt("retriever") as attempt:
            reply = self.retriever.invoke(question, **options_of(self.retriever, settings))
            return self._found(reply, settings)
        return self._found([], settings, attempt.error)

    async def _afind(self, question: str, settings: Settings) -> RetrieveUpdate:
        with Attempt("retriever") as attempt:
            reply = await self.retriever.ainvoke(question, **options_of(self.retriever, settings))
            return self._found(reply, settings)
        return self._found([], settings, attempt.error)

    def _found(
        self, reply: Iterable[Document], settings: Settings, error: Exception | None = None
    ) -> RetrieveUpdate:
        documents, events = plain_documents(reply, settings.k), list[Event]()
        if settings.folder is not None and "folder" not in options_of(self.retriever, settings):
            detail = f"the retriever {type(self.retriever).__name__} takes no folder"
            events.append(event("filter_ignored", "retrieve", detail, "search all documents"))
        if error is not None:
            events.append(event("retrieval_failed", "retrieve", error, _NOTHING))
        elif not documents:
            detail = "the retriever found no document"
            if settings.folder is not None and not events:
                detail = f"no document of the folder {settings.folder!r} was found: is it indexed?"
            events.append(event("nothing_retrieved", "retrieve", detail, _NOTHING))
        return RetrieveUpdate(documents=documents, events=events)

    def _with_language(self, found: RetrieveUpdate, question: str) -> RetrieveUpdate:
        """Add an event if the embedding model does not read the language of the question."""
        if reads(self.retriever, question):
            return found
        advice = "name one that does (CRAG_EMBEDDING_MODEL), and index again"
        detail = f"the embedding model does not read the language of the question: {advice}"
        fallback = "find documents by shared words more than by meaning"
        told = event("unread_language", "retrieve", detail, fallback)
        return {**found, "events": [told, *found["events"]]}


def _respelled(question: str, found: RetrieveUpdate, settings: Settings) -> str:
    """Return the question without typing errors; tasks of the papers take it as it is."""
    texts = [document.page_content for document in found["documents"]]
    return respelled(question, texts) if settings.respell else question


def _better(found: RetrieveUpdate, again: RetrieveUpdate, question: str) -> RetrieveUpdate:
    """Return what the respelled question found, unless that is nothing."""
    if not again["documents"]:
        return found
    told = event("question_respelled", "retrieve", f"the question is read as {question!r}")
    return {**again, "question": question, "events": [*again["events"], told]}
