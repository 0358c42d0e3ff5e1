"""Find documents for the question."""

import asyncio
from typing import Any, NamedTuple, NotRequired

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import TypedDict

from crag.correction.question import is_open, read_question
from crag.events import Event, event
from crag.nodes.open_run import OpeningUpdate, opening
from crag.runtime.attempt import Attempt, ignored_filters, options_of
from crag.runtime.replies import documents_of
from crag.settings import Settings
from crag.state import FreshEvents, OpenState
from crag.tasks import Posed
from crag.text.language import languages_of, named, unread_language
from crag.text.spelling import respelled


class DocumentsUpdate(TypedDict):
    """Written by `retrieve` if another node opened the run."""

    documents: list[Document]
    events: list[Event]
    posed: NotRequired[Posed]
    """Written if the question was respelled."""


RetrieveUpdate = OpeningUpdate | DocumentsUpdate


class _Found(NamedTuple):
    """What a question found, and what went wrong."""

    question: str
    documents: list[Document]
    events: list[Event]


class Retrieve:
    """Open the run: read the question, and ask the retriever for the k best documents.

    With `opens=False` the run is already open, and only documents and events are written.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

    If the question has typing errors, by the words of what it found, documents are found again for
    the question without them, and all that follows is done for that.

    A reranker orders `Settings.rerank_from` documents, of which the k best go on. If it fails,
    the retriever's order stays.

    Raises:
        QuestionError: the input holds no usable question.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        reranker: BaseDocumentCompressor | None = None,
        *,
        opens: bool = True,
    ) -> None:
        self._retriever = retriever
        self._reranker = reranker
        self._opens = opens

    def run(self, state: OpenState, settings: Settings) -> RetrieveUpdate:
        """Retrieve in the calling thread."""
        opened = self._opened(state, settings)
        found = self._found(settings.profile.bare_question(opened or state), settings)
        if (meant := _respelled(found, settings)) != found.question:
            again = self._found(meant, settings)
            found = again if again.documents else found
        return self._update(opened, state, found, settings)

    async def arun(self, state: OpenState, settings: Settings) -> RetrieveUpdate:
        """Retrieve without blocking the event loop."""
        opened = self._opened(state, settings)
        found = await self._afound(settings.profile.bare_question(opened or state), settings)
        # The model that tells languages is read from disk when it is first needed.
        meant = await asyncio.to_thread(_respelled, found, settings)
        if meant != found.question:
            again = await self._afound(meant, settings)
            found = again if again.documents else found
        return self._update(opened, state, found, settings)

    def _found(self, question: str, settings: Settings) -> _Found:
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = self._retriever.invoke(question, **self._options(settings))
            found = documents_of(reply, self._most(settings))
        reranking = Attempt("reranker")
        if self._reranker and found:
            with reranking:
                reranked = self._reranker.compress_documents(found, question)
                found = documents_of(reranked, settings.k, "reranker")
        return _Found(question, found[: settings.k], _events(found, attempt, reranking))

    async def _afound(self, question: str, settings: Settings) -> _Found:
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = await self._retriever.ainvoke(question, **self._options(settings))
            found = documents_of(reply, self._most(settings))
        reranking = Attempt("reranker")
        if self._reranker and found:
            with reranking:
                reranked = await self._reranker.acompress_documents(found, question)
                found = documents_of(reranked, settings.k, "reranker")
        return _Found(question, found[: settings.k], _events(found, attempt, reranking))

    def _options(self, settings: Settings) -> dict[str, Any]:
        options = options_of(self._retriever, settings)
        return options | {"k": self._most(settings)} if "k" in options else options

    def _most(self, settings: Settings) -> int:
        """Return how many documents the retriever is asked for."""
        return max(settings.k, settings.rerank_from) if self._reranker else settings.k

    def _opened(self, state: OpenState, settings: Settings) -> OpeningUpdate | None:
        """Open the run, unless it is open already."""
        if not self._opens or is_open(state):
            return None
        return opening(read_question(state, settings.max_question_characters), settings)

    def _update(
        self, opened: OpeningUpdate | None, state: OpenState, found: _Found, settings: Settings
    ) -> RetrieveUpdate:
        events = self._ignored(settings) + self._unread(found.question) + found.events
        update: RetrieveUpdate = opened or DocumentsUpdate(documents=[], events=[])
        posed = settings.profile.posed(opened or state)
        if found.question != posed["question"]:
            detail = f"the question is read as {found.question!r}"
            events.append(event("question_respelled", "retrieve", detail))
            update["posed"] = Posed(
                asked=posed["asked"], question=found.question, options=posed["options"]
            )
        update["documents"] = found.documents
        update["events"] = events if opened is None else FreshEvents(events)
        return update

    def _ignored(self, settings: Settings) -> list[Event]:
        names: list[str] = []
        with Attempt("retriever"):
            names = ignored_filters(self._retriever, settings)
        if not names:
            return []
        detail = f"the retriever {type(self._retriever).__name__} takes no {', '.join(names)}"
        return [event("filter_ignored", "retrieve", detail, "search all documents")]

    def _unread(self, question: str) -> list[Event]:
        detail = ""
        with Attempt("languages of the retriever"):
            if language := unread_language(self._retriever, question):
                detail = (
                    f"the question seems to be in {named([language])}, and the embedding model "
                    f"reads {named(languages_of(self._retriever))}: name one that reads both "
                    "(CRAG_EMBEDDING_MODEL), and index again"
                )
        if not detail:
            return []
        fallback = "find documents by shared words more than by meaning"
        return [event("unread_language", "retrieve", detail, fallback)]


def _respelled(found: _Found, settings: Settings) -> str:
    """Return the question without typing errors; tasks of the papers take it as it is."""
    if not (settings.respell and settings.profile.split):
        return found.question
    return respelled(found.question, (document.page_content for document in found.documents))


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
