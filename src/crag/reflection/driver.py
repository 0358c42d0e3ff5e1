"""What nodes that reflect have in common: they drive an algorithm, and record what it did."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever
from langgraph.config import get_stream_writer
from typing_extensions import TypedDict

from crag.correction.provenance import offered_document
from crag.errors import ModelError
from crag.events import Event, event
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    ReflectionBackend,
    SegmentLimits,
)
from crag.reflection.exchange import Asked, Judged, Steps, arun, run
from crag.reflection.records import Choice, Critique, Outcome, PassageRecord, SearchRecord
from crag.reflection.spending import Spending, counting
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import OfferedPassage, Reflection, State, Usage

Result = TypeVar("Result")


class ReflectUpdate(TypedDict):
    """Written by the algorithms' nodes; `reflection` is None while a beam search goes on."""

    approximation: str
    choices: list[Choice]
    passages: list[OfferedPassage]
    critiques: list[Critique]
    search: SearchRecord | None
    reflection: Reflection | None
    events: list[Event]
    usage: Usage


class Reflected(NamedTuple):
    """What came of driving an algorithm."""

    result: Any
    """None if the model failed."""
    found: list[OfferedPassage]
    """What was retrieved on the way."""
    events: list[Event]
    spending: Spending


def asked_of(state: State, settings: Settings) -> Asked:
    """Say what an algorithm is to answer, with the passages and the decision that are there.

    Where nothing was retrieved because nothing was wanted, a later segment may search.
    """
    profile, choices, passages = settings.profile, state.get("choices"), state.get("passages")
    posed = profile.posed(state)
    if not passages and choices and choices[0]["action"] != "retrieve":
        passages = None
    return Asked(
        instruction=profile.instruction_for(posed["question"], posed["options"]),
        query=posed["question"],
        closed=profile.closed,
        passages=None if passages is None else tuple(map(passage_of, passages)),
        decided=choices[0] if choices else None,
    )


def passage_of(record: PassageRecord) -> Passage:
    """Return a passage as a model reads it."""
    return Passage(record["title"], record["text"])


def in_order(
    records: Sequence[PassageRecord], known: Sequence[OfferedPassage]
) -> list[OfferedPassage]:
    """Return what is known of each passage, in the order in which an algorithm counts them."""
    by_text = {passage_of(passage): passage for passage in reversed(known)}
    return [by_text[passage_of(record)] for record in records]


def reflected(state: State, driven: Reflected, approximation: str) -> ReflectUpdate:
    """Write down what an algorithm came to; without result there is no reflection."""
    outcome: Outcome | None = driven.result
    known = [*(state.get("passages") or []), *driven.found]
    return ReflectUpdate(
        approximation=approximation,
        choices=outcome["choices"] if outcome else state.get("choices", []),
        passages=in_order(outcome["passages"], known) if outcome else known,
        critiques=outcome["critiques"] if outcome else [],
        search=None,
        reflection=reflection_of(outcome) if outcome else None,
        events=driven.events,
        usage=driven.spending.usage,
    )


def reflection_of(outcome: Outcome) -> Reflection:
    """Return what is kept of an outcome beside choices, critiques and passages."""
    return Reflection(
        answer=outcome["answer"],
        raw=outcome["raw"],
        cited=outcome["cited"],
        score=outcome["score"],
        flags=outcome["flags"],
        tokens=outcome["tokens"],
    )


class Driver:
    """Drive algorithms with one back end and, where they search themselves, one retriever.

    A failure of the back end that an algorithm does not survive leaves no result, and an event
    whose fallback is `without`. A vector store's retriever is asked for `Settings.k`.
    """

    def __init__(
        self,
        backend: ReflectionBackend,
        node: str,
        *,
        retriever: BaseRetriever | None = None,
        without: str = "abstain",
    ) -> None:
        self.backend: ReflectionBackend = _Held(backend)
        self._takes_k = isinstance(retriever, VectorStoreRetriever)
        self._retriever, self._node, self._without = retriever, node, without

    def run(self, steps: Callable[[], Steps[Result]], settings: Settings) -> Reflected:
        """Drive in the calling thread."""
        found: list[OfferedPassage] = []
        events: list[Event] = []
        result = None

        def search(query: str) -> list[Passage]:
            documents: list[Document] = []
            with Attempt("retriever") as attempt:
                if self._retriever is not None:
                    documents = self._retriever.invoke(query, **self._options(settings))
            return self._passages(documents, attempt, settings, (found, events))

        with counting() as spending:
            try:
                result = run(steps(), self.backend, search, _tell)
            except ModelError as error:
                events.append(event("model_failed", self._node, error, self._without))
        return Reflected(result, found, events, spending)

    async def arun(self, steps: Callable[[], Steps[Result]], settings: Settings) -> Reflected:
        """Drive without blocking the event loop."""
        found: list[OfferedPassage] = []
        events: list[Event] = []
        result = None

        async def search(query: str) -> list[Passage]:
            documents: list[Document] = []
            with Attempt("retriever") as attempt:
                if self._retriever is not None:
                    documents = await self._retriever.ainvoke(query, **self._options(settings))
            return self._passages(documents, attempt, settings, (found, events))

        with counting() as spending:
            try:
                result = await arun(steps(), self.backend, search, _tell)
            except ModelError as error:
                events.append(event("model_failed", self._node, error, self._without))
        return Reflected(result, found, events, spending)

    def _options(self, settings: Settings) -> dict[str, Any]:
        return {"k": settings.k} if self._takes_k else {}

    def _passages(
        self,
        documents: Sequence[Document],
        attempt: Attempt,
        settings: Settings,
        record: tuple[list[OfferedPassage], list[Event]],
    ) -> list[Passage]:
        found, events = record
        if attempt.error is not None:
            fallback = "go on without new passages"
            events.append(event("retrieval_failed", self._node, attempt.error, fallback))
        kept = [document for document in documents[: settings.k] if document.page_content.strip()]
        offered = [offered_document(document, place) for place, document in enumerate(kept)]
        found += offered
        return [passage_of(passage) for passage in offered]


class _Held:
    """A back end whose every failure is a `ModelError`, so that algorithms can go on after it."""

    def __init__(self, backend: ReflectionBackend) -> None:
        self._backend = backend

    @property
    def approximation(self) -> str:
        return self._backend.approximation

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        with Attempt("reflection") as attempt:
            return list(self._backend.decide(prefixes))
        raise _failure(attempt)

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        with Attempt("reflection") as attempt:
            return list(self._backend.candidates(continuations, limits))
        raise _failure(attempt)

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        with Attempt("reflection") as attempt:
            return list(await self._backend.adecide(prefixes))
        raise _failure(attempt)

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        with Attempt("reflection") as attempt:
            return list(await self._backend.acandidates(continuations, limits))
        raise _failure(attempt)


def _failure(attempt: Attempt) -> ModelError:
    error = attempt.error
    if isinstance(error, ModelError):
        return error
    return ModelError("reflection", "failed", f"{type(error).__name__}: {error}")


def _tell(judged: Judged) -> None:
    """Show what was judged to those who stream in mode ``custom``."""
    choices, critiques = list(judged.choices), list(judged.critiques)
    get_stream_writer()({"judged": {"choices": choices, "critiques": critiques}})
