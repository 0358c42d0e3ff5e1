"""Who answers an algorithm of Self-RAG: the back end decides and writes, the retriever searches.

An algorithm (short form, beam search, graded loop) is a plain function of what is asked and a
`Driver`::

    node ─► Driver.answer ─► algorithm ── decide, candidates, search ──► back end, retriever
                 ◄── record of reflection ──┘
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.correction.provenance import offered_document
from crag.errors import ModelError
from crag.events import Event, event
from crag.parts import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    ReflectionBackend,
    SegmentLimits,
)
from crag.plain import said
from crag.runtime.calls import Attempt, as_many, options_of, plain_documents
from crag.settings import Settings
from crag.state import Choice, OfferedPassage, Reflection, State, Usage, add_usage, reflected

Reply = TypeVar("Reply")
_SPENT: ContextVar[Usage | None] = ContextVar("crag_reflection_spent", default=None)


@contextmanager
def counting() -> Iterator[Usage]:
    """Sum what back ends, which serve many runs at once, spend in the ``with`` block."""
    spent = Usage()
    token = _SPENT.set(spent)
    try:
        yield spent
    finally:
        _SPENT.reset(token)


def spend(usage: Usage) -> None:
    """Report the cost of one call of a back end; without effect outside `counting`."""
    if (spent := _SPENT.get()) is not None:
        spent.update(add_usage(spent, usage))


class Asked(NamedTuple):
    """What an algorithm is to answer."""

    instruction: str
    """The instruction field of the prompt: see `crag.reflection.prompt_format`."""
    query: str
    """The search query for passages."""
    closed: bool = False
    """Short form: the answers form a closed set, so scores of identical ones are summed."""
    passages: tuple[OfferedPassage, ...] | None = None
    """Passages retrieved before; None: the algorithm searches when it needs them."""
    decided: Choice | None = None
    """Whether to retrieve before the first segment, if that was decided before."""
    record: Reflection = Reflection()
    """What earlier rounds of a beam search wrote."""

    def prefix(self, answered: str = "", passage: Passage | None = None) -> Prefix:
        """Return what the next segment continues, after what was answered so far."""
        bare = "" if self.query == self.instruction else self.query
        return Prefix(self.instruction, answered, passage, bare)


def asked_of(state: State, settings: Settings) -> Asked:
    """Return what an algorithm is to answer, with the passages and the decision in `state`.

    A record with an answer is of an earlier question on the thread.
    """
    profile, known = settings.profile, reflected(state)
    if "answer" in known:
        known = Reflection()
    passages, choices, asked = known.get("passages"), known.get("choices"), state.get("asked")
    posed, options = profile.split_apart(asked or state["question"])
    question = state["question"] if asked else posed
    return Asked(
        instruction=profile.instruction_for(question, options),
        query=question,
        closed=profile.closed,
        passages=None if passages is None else tuple(passages),
        decided=choices[0] if choices else None,
        record=known,
    )


class Driver:
    """One back end and, where an algorithm searches itself, one retriever, for one run.

    A search that fails finds nothing, and is recorded as an event of `node`. A vector store's
    retriever is asked for `Settings.k`.
    """

    def __init__(
        self,
        backend: ReflectionBackend,
        settings: Settings,
        *,
        retriever: BaseRetriever | None = None,
        node: str = "reflect",
    ) -> None:
        self._backend, self._retriever, self._node = backend, retriever, node
        self.settings = settings
        self.events: list[Event] = []

    def answer(self, state: State, algorithm: "Algorithm") -> State:
        """Run an algorithm; if the back end fails, its answer is empty."""
        record: Reflection = {
            "choices": [], "passages": [], **reflected(state),
            "critiques": [], "beam": None, "answer": "", "flags": [],
        }  # fmt: skip
        with counting() as spent, Attempt("reflection") as attempt:
            record = algorithm(asked_of(state, self.settings), self)
        if attempt.error is not None:
            self.events.append(event("model_failed", self._node, attempt.error, "abstain"))
        record["approximation"] = self._backend.approximation
        return State(reflection=record, events=self.events, usage=spent)

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return one decision for each prefix, by one call.

        Raises:
            ModelError: the back end failed.
        """
        return _replies(self._backend.decide, prefixes)

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one candidate for each continuation, by one call, whatever their prefixes.

        Raises:
            ModelError: the back end failed.
        """
        return _replies(self._backend.candidates, continuations, limits)

    def search(self, query: str) -> list[OfferedPassage]:
        """Return passages, best first."""
        documents: list[Document] = []
        retriever = self._retriever
        with Attempt("retriever") as attempt:
            if retriever is not None:
                reply = retriever.invoke(query, **options_of(retriever, self.settings))
                documents = plain_documents(reply, self.settings.k)
        if attempt.error is not None:
            fallback = "go on without new passages"
            self.events.append(event("retrieval_failed", self._node, attempt.error, fallback))
        kept = [document for document in documents if document.page_content.strip()]
        return [offered_document(document, place) for place, document in enumerate(kept)]


Algorithm = Callable[[Asked, Driver], Reflection]


def _replies(ask: Callable[..., list[Reply]], asked: Sequence[Any], *more: Any) -> list[Reply]:
    """Ask a back end; whatever it raises is a `ModelError`, which algorithms can handle."""
    with Attempt("reflection") as attempt:
        return as_many(ask(asked, *more), len(asked), "back end of reflection")
    if isinstance(attempt.error, ModelError):
        raise attempt.error
    detail = f"{type(attempt.error).__name__}: {said(attempt.error)}"
    raise ModelError("reflection", "failed", detail) from None


class Offered:
    """The passages of a run, each once, in the order in which they first came.

    Passages are the same if title and text are, up to white space.
    """

    def __init__(self, passages: Sequence[OfferedPassage] = ()) -> None:
        self.records: list[OfferedPassage] = []
        self._places: dict[tuple[str, str], int] = {}
        self.add(passages)

    def add(self, passages: Sequence[OfferedPassage]) -> list[int]:
        """Return the index of each passage, without repetitions."""
        places: dict[int, None] = {}
        for passage in passages:
            key = (" ".join(passage["title"].split()), " ".join(passage["text"].split()))
            if key not in self._places:
                self._places[key] = len(self.records)
                self.records.append(passage)
            places[self._places[key]] = None
        return list(places)

    def __getitem__(self, index: int | None) -> Passage | None:
        """Return a passage as a model reads it."""
        record = None if index is None else self.records[index]
        return Passage(record["title"], record["text"]) if record else None
