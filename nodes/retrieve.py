"""Find documents for the question."""

from typing import Any

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
from crag.text.language import languages_of, named, unread_language


class DocumentsUpdate(TypedDict):
    """Written by `retrieve` if another node opened the run."""

    documents: list[Document]
    events: list[Event]


RetrieveUpdate = OpeningUpdate | DocumentsUpdate


class Retrieve:
    """Open the run: read the question, and ask the retriever for the k best documents.

    With `opens=False` the run is already open, and only documents and events are written.

    If the retriever fails or finds nothing, the node writes no documents and records an event. The
    action is then Incorrect, so the web is searched (official rule for empty retrieval).

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
        question = settings.profile.bare_question(opened or state)
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = self._retriever.invoke(question, **self._options(settings))
            found = documents_of(reply, self._most(settings))
        reranking = Attempt("reranker")
        if self._reranker and found:
            with reranking:
                reranked = self._reranker.compress_documents(found, question)
                found = documents_of(reranked, settings.k, "reranker")
        return self._update(opened, question, found, settings, attempt, reranking)

    async def arun(self, state: OpenState, settings: Settings) -> RetrieveUpdate:
        """Retrieve without blocking the event loop."""
        opened = self._opened(state, settings)
        question = settings.profile.bare_question(opened or state)
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            reply = await self._retriever.ainvoke(question, **self._options(settings))
            found = documents_of(reply, self._most(settings))
        reranking = Attempt("reranker")
        if self._reranker and found:
            with reranking:
                reranked = await self._reranker.acompress_documents(found, question)
                found = documents_of(reranked, settings.k, "reranker")
        return self._update(opened, question, found, settings, attempt, reranking)

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

    def _update(  # noqa: PLR0913, PLR0917 - what came of one retrieval
        self,
        opened: OpeningUpdate | None,
        question: str,
        found: list[Document],
        settings: Settings,
        attempt: Attempt,
        reranking: Attempt,
    ) -> RetrieveUpdate:
        found = found[: settings.k]
        events = self._ignored(settings) + self._unread(question) + _events(found, attempt)
        if reranking.error is not None:
            fallback = "keep the order of the retriever"
            events.append(event("reranker_failed", "retrieve", reranking.error, fallback))
        if opened is None:
            return DocumentsUpdate(documents=found, events=events)
        opened["documents"], opened["events"] = found, FreshEvents(events)
        return opened

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


def _events(found: list[Document], attempt: Attempt) -> list[Event]:
    fallback = "continue as if nothing relevant was retrieved"
    if attempt.error is not None:
        return [event("retrieval_failed", "retrieve", attempt.error, fallback)]
    if not found:
        detail = "the retriever found no document"
        return [event("nothing_retrieved", "retrieve", detail, fallback)]
    return []
