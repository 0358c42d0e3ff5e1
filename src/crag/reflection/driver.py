"""Who answers an algorithm of Self-RAG: the back end decides and writes, the retriever searches.

An algorithm (short form, beam search, graded loop) is a plain function of what is asked and a
`Driver`::

    node ─► Driver.answer ─► algorithm ── decide, candidates, search ──► back end, retriever
                 ◄── record of reflection ──┘
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import TypedDict

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
from crag.reflection.rules import OURS, Rules
from crag.reflection.spending import counting
from crag.runtime.attempt import Attempt
from crag.runtime.evaluator_calls import as_many
from crag.runtime.retrievers import documents_of, options_of
from crag.settings import Settings
from crag.state import Choice, Flag, OfferedPassage, Reflection, State, Usage, reflected

Reply = TypeVar("Reply")
Clock = Callable[[], float]
"""Returns seconds, as `time.monotonic` does."""


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

    def prefix(self, answered: str = "", passage: Passage | None = None) -> Prefix:
        """Return what the next segment continues, after what was answered so far."""
        bare = "" if self.query == self.instruction else self.query
        return Prefix(self.instruction, answered, passage, bare)


class Driver:
    """One back end and, where an algorithm searches itself, one retriever, for one run.

    A search that fails finds nothing, and is recorded as an event of `node`. A vector store's
    retriever is asked for `Settings.k`.
    """

    def __init__(  # noqa: PLR0913 - what a run of any algorithm depends on
        self,
        backend: ReflectionBackend,
        settings: Settings,
        *,
        retriever: BaseRetriever | None = None,
        rules: Rules = OURS,
        node: str = "reflect",
        clock: Clock = time.monotonic,
    ) -> None:
        self._backend, self._retriever, self._node = backend, retriever, node
        self.settings, self.rules, self.clock = settings, rules, clock
        self.found: list[OfferedPassage] = []
        self.events: list[Event] = []

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return one decision for each prefix, by one call.

        Raises:
            ModelError: the back end failed.
        """
        with _model_errors():
            return as_many(self._backend.decide(prefixes), len(prefixes), "back end")

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one candidate for each continuation, by one call, whatever their prefixes.

        Raises:
            ModelError: the back end failed.
        """
        with _model_errors():
            replies = self._backend.candidates(continuations, limits)
            return as_many(replies, len(continuations), "back end")

    def answer(self, state: State, algorithm: Callable[[], Reflection]) -> "ReflectUpdate":
        """Run an algorithm; if the back end fails, its answer is empty."""
        known = reflected(state)
        record = Reflection(
            choices=known.get("choices", []), passages=known.get("passages", []), critiques=[],
            beam=None,
        )  # fmt: skip
        with counting() as spending, Attempt("reflection") as attempt:
            record = algorithm()
        if attempt.error is not None:
            self.events.append(event("model_failed", self._node, attempt.error, "abstain"))
            record["passages"] = [*record["passages"], *self.found]
            record["answer"], record["flags"] = "", []  # None of an earlier question's is left.
        record["approximation"] = self._backend.approximation
        return ReflectUpdate(reflection=record, events=self.events, usage=spending.usage)

    def search(self, query: str) -> list[OfferedPassage]:
        """Return passages, best first."""
        documents: list[Document] = []
        retriever = self._retriever
        with Attempt("retriever") as attempt:
            if retriever is not None:
                reply = retriever.invoke(query, **options_of(retriever, self.settings))
                documents = documents_of(reply, self.settings.k)
        if attempt.error is not None:
            fallback = "go on without new passages"
            self.events.append(event("retrieval_failed", self._node, attempt.error, fallback))
        kept = [document for document in documents if document.page_content.strip()]
        passages = [offered_document(document, place) for place, document in enumerate(kept)]
        self.found += passages
        return passages


@contextmanager
def _model_errors() -> Iterator[None]:
    """Turn every failure of a back end into a `ModelError`, which algorithms can handle."""
    with Attempt("reflection") as attempt:
        yield
    error = attempt.error
    if isinstance(error, ModelError):
        raise error
    if error is not None:
        detail = f"{type(error).__name__}: {said(error)}"
        raise ModelError("reflection", "failed", detail) from None


class Offered:
    """The passages of a run, each once, in the order in which they first came."""

    def __init__(self, passages: Sequence[OfferedPassage] = ()) -> None:
        self.records: list[OfferedPassage] = []
        self._places: dict[tuple[str, str], int] = {}
        for passage in passages:
            self._place(passage)

    def add(self, passages: Sequence[OfferedPassage], flags: list[Flag]) -> list[int]:
        """Return the index of each passage, without repetitions, and flag if there are any or none.

        Passages are the same if title and text are, up to white space.
        """
        places = list(dict.fromkeys(self._place(passage) for passage in passages))
        if len(places) < len(passages):
            flags.append("duplicate_passages")
        if not places:
            flags.append("no_passages")
        return places

    def numbered(self, index: int | None) -> tuple[int, Passage] | None:
        """Return a passage with its index."""
        return None if index is None else (index, passage_of(self.records[index]))

    def __getitem__(self, index: int | None) -> Passage | None:
        return None if index is None else passage_of(self.records[index])

    def _place(self, passage: OfferedPassage) -> int:
        key = (" ".join(passage["title"].split()), " ".join(passage["text"].split()))
        if key not in self._places:
            self._places[key] = len(self.records)
            self.records.append(passage)
        return self._places[key]


def passage_of(record: OfferedPassage) -> Passage:
    """Return a passage as a model reads it."""
    return Passage(record["title"], record["text"])


class ReflectUpdate(TypedDict):
    """Written by the nodes of reflection."""

    reflection: Reflection
    events: list[Event]
    usage: Usage


def asked_of(state: State, settings: Settings) -> Asked:
    """Return what an algorithm is to answer, with the passages and the decision in `state`.

    A record with an answer is of an earlier question on the thread.
    """
    profile, known = settings.profile, reflected(state)
    if "answer" in known:
        known = Reflection()
    posed, passages, choices = profile.posed(state), known.get("passages"), known.get("choices")
    return Asked(
        instruction=profile.instruction_for(posed["question"], posed["options"]),
        query=posed["question"],
        closed=profile.closed,
        passages=None if passages is None else tuple(passages),
        decided=choices[0] if choices else None,
    )
