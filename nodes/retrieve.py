"""Find documents for the question."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple, NotRequired

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import TypedDict

from crag.events import Event, event
from crag.runtime.attempt import Attempt
from crag.runtime.retrievers import ignores_folder, options_of, plain_documents
from crag.settings import Settings
from crag.state import State
from crag.text.language import languages_of, named, unread_language
from crag.text.spelling import respelled

_NOTHING = "continue as if nothing relevant was retrieved"


class RetrieveUpdate(TypedDict):
    """Written by `retrieve`."""

    documents: list[Document]
    events: list[Event]
    question: NotRequired[str]
    """Written if it was respelled."""


class _Found(NamedTuple):
    """What a question found, and what went wrong."""

    documents: list[Document]
    events: list[Event]


@dataclass(frozen=True)
class Retrieve:
    """Ask the retriever for the k best documents.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

    If the question has typing errors, by the words of what it found, documents are found again for
    the question without them, and all that follows is done for that.
    """

    retriever: BaseRetriever

    def run(self, state: State, settings: Settings) -> RetrieveUpdate:
        """Write the documents, best first."""
        question = state["question"]
        found = self._find(question, settings)
        meant = _respelled(question, found, settings)
        again = self._find(meant, settings) if meant != question else found
        return self._update(question, meant, found, again, settings)

    async def arun(self, state: State, settings: Settings) -> RetrieveUpdate:
        """Do the same, awaiting the retriever."""
        question = state["question"]
        found = await self._afind(question, settings)
        # The model that tells languages is read from disk when it is first needed.
        meant = await asyncio.to_thread(_respelled, question, found, settings)
        again = await self._afind(meant, settings) if meant != question else found
        return self._update(question, meant, found, again, settings)

    def _find(self, question: str, settings: Settings) -> _Found:
        documents: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = self.retriever.invoke(question, **options_of(self.retriever, settings))
            documents = plain_documents(reply, settings.k)
        return _Found(documents, _events(documents, attempt))

    async def _afind(self, question: str, settings: Settings) -> _Found:
        documents: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = await self.retriever.ainvoke(question, **options_of(self.retriever, settings))
            documents = plain_documents(reply, settings.k)
        return _Found(documents, _events(documents, attempt))

    def _update(
        self, question: str, meant: str, found: _Found, again: _Found, settings: Settings
    ) -> RetrieveUpdate:
        """Take what the respelled question found, unless that is nothing."""
        is_respelled = meant != question and bool(again.documents)
        documents, problems = again if is_respelled else found
        question = meant if is_respelled else question
        events = [*_unread(self.retriever, question), *problems]
        if ignores_folder(self.retriever, settings):
            detail = f"the retriever {type(self.retriever).__name__} takes no folder"
            events.insert(0, event("filter_ignored", "retrieve", detail, "search all documents"))
        update = RetrieveUpdate(documents=documents, events=events)
        if is_respelled:
            detail = f"the question is read as {question!r}"
            events.append(event("question_respelled", "retrieve", detail))
            update["question"] = question
        return update


def _unread(retriever: BaseRetriever, question: str) -> list[Event]:
    """Return an event if it is clear that the embedding model does not read the question."""
    if not (language := unread_language(retriever, question)):
        return []
    reads = f"the embedding model reads {named(languages_of(retriever))}"
    advice = "name one that reads both (CRAG_EMBEDDING_MODEL), and index again"
    detail = f"the question seems to be in {named([language])}, and {reads}: {advice}"
    fallback = "find documents by shared words more than by meaning"
    return [event("unread_language", "retrieve", detail, fallback)]


def _respelled(question: str, found: _Found, settings: Settings) -> str:
    """Return the question without typing errors; tasks of the papers take it as it is."""
    texts = [document.page_content for document in found.documents]
    return respelled(question, texts) if settings.respell else question


def _events(documents: list[Document], attempt: Attempt) -> list[Event]:
    if attempt.error is not None:
        return [event("retrieval_failed", "retrieve", attempt.error, _NOTHING)]
    if not documents:
        return [event("nothing_retrieved", "retrieve", "the retriever found no document", _NOTHING)]
    return []
