"""Find documents for the question."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever

from crag.edge import Attempt
from crag.events import event
from crag.question import read_question
from crag.settings import Settings
from crag.state import FreshEvents, InputState
from crag.updates import OpeningUpdate, opening


class Retrieve:
    """Open the run: read the question, and ask the retriever for its k best documents.

    A retriever that fails or finds nothing leaves no documents and an event, which makes the
    action Incorrect: the web takes over (official rule for empty retrieval).

    Raises:
        QuestionError: the input holds no usable question.
    """

    def __init__(self, retriever: BaseRetriever) -> None:
        self._retriever = retriever
        self._takes_k = isinstance(retriever, VectorStoreRetriever)

    def run(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Retrieve in the calling thread."""
        question = read_question(state, settings.max_question_characters)
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            found = self._retriever.invoke(question, **self._options(settings))
        return _update(question, found, attempt, settings)

    async def arun(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Retrieve without blocking the event loop."""
        question = read_question(state, settings.max_question_characters)
        found: list[Document] = []
        with Attempt("retriever") as attempt:
            found = await self._retriever.ainvoke(question, **self._options(settings))
        return _update(question, found, attempt, settings)

    def _options(self, settings: Settings) -> dict[str, Any]:
        return {"k": settings.k} if self._takes_k else {}


def _update(
    question: str, found: list[Document], attempt: Attempt, settings: Settings
) -> OpeningUpdate:
    update = opening(question)
    update["documents"] = list(found)[: settings.k]
    fallback = "go on as if nothing relevant was retrieved"
    if attempt.error is not None:
        failed = event("retrieval_failed", "retrieve", attempt.error, fallback)
        update["events"] = FreshEvents([failed])
    elif not found:
        nothing = event(
            "nothing_retrieved", "retrieve", "the retriever found no document", fallback
        )
        update["events"] = FreshEvents([nothing])
    return update
