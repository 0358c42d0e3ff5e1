"""Find documents for the question."""

import asyncio
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.events import Event, event
from crag.runtime.calls import Attempt, options_of, plain_documents
from crag.settings import Settings
from crag.state import State
from crag.text.language import reads
from crag.text.spelling import respelled

_NOTHING = "continue as if nothing relevant was retrieved"
Found = tuple[list[Document], Exception | None]
"""Documents, and why there are none."""


@dataclass(frozen=True)
class Retrieve:
    """Ask the retriever for the k best documents.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

    If the question has typing errors, by the words of what it found, documents are found again for
    the question without them, and all that follows is done for that, unless it finds nothing.
    """

    retriever: BaseRetriever

    def run(self, state: State, settings: Settings) -> State:
        """Write the documents, best first."""
        question = state["question"]
        found, again = self._find(question, settings), None
        meant = _respelled(question, found, settings)
        if meant != question:
            again = self._find(meant, settings)
        return self._concluded(meant, found, again, settings)

    async def arun(self, state: State, settings: Settings) -> State:
        """Do the same, awaiting the retriever."""
        question = state["question"]
        found, again = await self._afind(question, settings), None
        # The model that tells languages is read from disk when it is first needed.
        meant = await asyncio.to_thread(_respelled, question, found, settings)
        if meant != question:
            again = await self._afind(meant, settings)
        return self._concluded(meant, found, again, settings)

    def _find(self, question: str, settings: Settings) -> Found:
        with Attempt("retriever") as attempt:
            reply = self.retriever.invoke(question, **options_of(self.retriever, settings))
            return plain_documents(reply, settings.k), None
        return [], attempt.error

    async def _afind(self, question: str, settings: Settings) -> Found:
        with Attempt("retriever") as attempt:
            reply = await self.retriever.ainvoke(question, **options_of(self.retriever, settings))
            return plain_documents(reply, settings.k), None
        return [], attempt.error

    def _concluded(
        self, meant: str, found: Found, again: Found | None, settings: Settings
    ) -> State:
        """Write what was found, or again for the question as it is meant, unless that is none."""
        events, is_respelled = list[Event](), again is not None and bool(again[0])
        documents, error = again if again and is_respelled else found
        if not reads(self.retriever, meant):
            advice = "name one that does (CRAG_EMBEDDING_MODEL), and index again"
            detail = f"the embedding model does not read the language of the question: {advice}"
            fallback = "find documents by shared words more than by meaning"
            events.append(event("unread_language", "retrieve", detail, fallback))
        searches_all = settings.folder and "folder" not in options_of(self.retriever, settings)
        if searches_all:
            detail = f"the retriever {type(self.retriever).__name__} takes no folder"
            events.append(event("filter_ignored", "retrieve", detail, "search all documents"))
        if error is not None:
            events.append(event("retrieval_failed", "retrieve", error, _NOTHING))
        elif not documents:
            detail = "the retriever found no document"
            if settings.folder and not searches_all:
                detail = f"no document of the folder {settings.folder!r} was found: is it indexed?"
            events.append(event("nothing_retrieved", "retrieve", detail, _NOTHING))
        if not is_respelled:
            return State(documents=documents, events=events)
        events.append(event("question_respelled", "retrieve", f"the question is read as {meant!r}"))
        return State(documents=documents, events=events, question=meant)


def _respelled(question: str, found: Found, settings: Settings) -> str:
    """Return the question without typing errors; tasks of the papers take it as it is."""
    texts = [document.page_content for document in found[0]]
    return respelled(question, texts) if settings.respell else question
