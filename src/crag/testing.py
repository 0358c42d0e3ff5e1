"""Fakes for every part, for your tests and ours.

Each fake records its calls. None loads a model or uses the network.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from crag.correction.strips import with_title
from crag.errors import ModelError
from crag.parts import (
    Candidate,
    Continuation,
    Decision,
    Hit,
    Page,
    Passage,
    Prefix,
    Quotation,
    ReadingLimits,
    SegmentLimits,
)
from crag.reading import Reading, Span, compressed
from crag.reflection.driver import spend
from crag.reflection_tokens import IRRELEVANT, NO_RETRIEVAL, RELEVANT, RETRIEVAL, SUPPORT, UTILITY
from crag.state import Ending, Strip, Thresholds, Usage

__all__ = [
    "FakeChatModel", "FakeEvaluator", "FakeQuoter", "FakeReader", "FakeReadingEvaluator",
    "FakeReflection", "FakeRetriever", "FakeSearcher", "fake_candidate", "fake_decision",
]  # fmt: skip


class FakeRetriever(BaseRetriever):
    """Return the same documents for every question, or raise."""

    documents: list[Document] = Field(default_factory=list)
    error: Exception | None = None
    questions: list[str] = Field(default_factory=list)
    """The questions asked, in order."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        self.questions.append(query)
        if self.error is not None:
            raise self.error
        return list(self.documents)


Score = float | Mapping[str, float] | Callable[[str, str], float]
"""One score for all texts, by what a text contains, or a function of question and text."""


class FakeEvaluator:
    """Score texts; what no entry of a mapping fits gets the score `otherwise`."""

    def __init__(
        self,
        score: Score = 1.0,
        *,
        upper: float = 0.5,
        lower: float = -0.5,
        otherwise: float = -1.0,
        error: Exception | None = None,
    ) -> None:
        self._score, self._otherwise, self._error = score, otherwise, error
        self.thresholds = Thresholds(upper=upper, lower=lower)
        self.calls: list[tuple[str, list[str]]] = []
        """Question and texts of each call."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order, or raise the given error."""
        self.calls.append((question, list(texts)))
        if self._error is not None:
            raise self._error
        return [self._one(question, text) for text in texts]

    def _one(self, question: str, text: str) -> float:
        if isinstance(self._score, Mapping):
            found = (score for part, score in self._score.items() if part in text)
            return next(found, self._otherwise)
        return self._score(question, text) if callable(self._score) else self._score


class FakeReadingEvaluator(FakeEvaluator):
    """Score as `FakeEvaluator` does, and mark as evidence what stands in `evidence`.

    The phrases are likely evidence (0.95), every other character is not (0.02). The first of them
    that a passage holds is its answer span.
    """

    def __init__(
        self, score: Score = 0.9, *evidence: str, quote_threshold: float = 0.5, **options: Any
    ) -> None:
        super().__init__(score, **options)
        self._evidence, self.quote_threshold = evidence, quote_threshold
        self.read_passages: list[list[Passage]] = []
        """The passages of each call of `read`."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order, or raise the given error."""
        self.read_passages.append(list(passages))
        scores = self.score(question, [with_title(one.title, one.text) for one in passages])
        return [self._reading(score, one.text) for score, one in zip(scores, passages, strict=True)]

    def _reading(self, score: float, text: str) -> Reading:
        shares = [0.02] * len(text)
        found = [(at, phrase) for phrase in self._evidence if (at := text.find(phrase)) >= 0]
        for at, phrase in found:
            shares[at : at + len(phrase)] = [0.95] * len(phrase)
        spans = (Span(start=at, end=at + len(phrase), score=0.9) for at, phrase in found)
        evidence = compressed(range(1, len(text) + 1), shares)
        return Reading(score=score if text else -1.0, evidence=evidence, span=next(spans, None))


@dataclass
class FakeSearcher:
    """Return the same hits for every query, or raise."""

    hits: Sequence[Hit] = ()
    error: Exception | None = None
    queries: list[str] = field(default_factory=list)
    """The queries, in order."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` of the hits."""
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        return list(self.hits[:limit])


@dataclass
class FakeReader:
    """Return the given paragraphs of an address, the problem "network", or raise."""

    pages: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error: Exception | None = None
    calls: list[tuple[list[str], ReadingLimits]] = field(default_factory=list)
    """Addresses and limits of each call."""

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each address, in order."""
        self.calls.append((list(urls), limits))
        if self.error is not None:
            raise self.error
        return [
            Page(url, "A page", tuple(self.pages[url])) if url in self.pages
            else Page(url, problem="network", detail="there is no such page")
            for url in urls
        ]  # fmt: skip


@dataclass
class FakeQuoter:
    """Quote the first strip whole, sure or not, or nothing."""

    finds: bool = True
    sure: bool = True

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Return one quotation, or none."""
        del question
        found = strips[:1] if self.finds else []
        return [Quotation(strip["text"], 0, 1.0, sure=self.sure) for strip in found]


class FakeChatModel(GenericFakeChatModel):
    """Reply with the given texts in turn, then repeat the last one; stream them word by word."""

    messages: Iterator[AIMessage | str] = Field(default_factory=lambda: iter(()))
    replies: list[str] = Field(default_factory=lambda: ["A fact [1]."])
    error: Exception | None = None
    refusal: str = ""
    """If set, the model refuses with this text, as OpenAI's models do."""
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    """The messages of each call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = len(self.prompts)
        self.prompts.append(messages)
        if self.error is not None:
            raise self.error
        text = "" if self.refusal else self.replies[min(turn, len(self.replies) - 1)]
        extra = {} if text else {"refusal": self.refusal}
        message = AIMessage(text, additional_kwargs=extra)
        return ChatResult(generations=[ChatGeneration(message=message)])


Table = Mapping[tuple[str, str | None], Candidate]
"""Candidates by what was answered so far and the text of the passage, None without one."""


def fake_decision(retrieve: float) -> Decision:
    """Return a decision with this probability of ``[Retrieval]``, the rest on the opposite."""
    emitted = RETRIEVAL if retrieve > 1 - retrieve else NO_RETRIEVAL
    return Decision({RETRIEVAL: retrieve, NO_RETRIEVAL: 1 - retrieve}, emitted)


def fake_candidate(  # noqa: PLR0913 - one for each critique
    text: str,
    *,
    relevance: float | None = 0.9,
    support: float | None = 0.9,
    utility: int | None = 5,
    mean_log_probability: float = -0.1,
    ending: Ending = "end",
) -> Candidate:
    """Return a candidate whose shares of relevant and of fully supported are as given.

    `utility` is the grade, with probability 1. None: the model wrote no such token.
    """
    return Candidate(
        text,
        None if relevance is None else {IRRELEVANT: 1 - relevance, RELEVANT: relevance},
        None if support is None else dict(zip(SUPPORT, (support, 0.0, 1 - support), strict=True)),
        None if utility is None else {t: float(t == f"[Utility:{utility}]") for t in UTILITY},
        mean_log_probability,
        len(text.split()),
        ending,
    )


@dataclass
class FakeReflection:
    """Return candidates of a table or function, and one decision, or those of a function.

    What a table does not contain is an empty candidate. After `fails_after` calls all others fail.
    """

    says: Table | Callable[[Prefix, Passage | None], Candidate]
    decision: Decision | Callable[[Prefix], Decision] = field(
        default_factory=lambda: fake_decision(0.9)
    )
    fails_after: int | None = None
    approximation: str = ""
    decided: list[Prefix] = field(default_factory=list)
    """What each decision was asked for."""
    rounds: list[tuple[list[Continuation], SegmentLimits]] = field(default_factory=list)
    """What each call for candidates was asked for, and within which limits."""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return one decision for each prefix, in order."""
        self._call()
        self.decided += prefixes
        return [
            self.decision(prefix) if callable(self.decision) else self.decision
            for prefix in prefixes
        ]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one candidate for each continuation, in order."""
        self._call()
        self.rounds.append((list(continuations), limits))
        return [self._candidate(*continuation) for continuation in continuations]

    def _candidate(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        if callable(self.says):
            return self.says(prefix, passage)
        key = (prefix.answered, passage.text if passage else None)
        return self.says.get(key, Candidate("", {}, None, None, 0.0, 0, "end"))

    def _call(self) -> None:
        if self.fails_after == 0:
            raise ModelError("fake", "failed", "it is set to fail")
        self.fails_after = None if self.fails_after is None else self.fails_after - 1
        spend(Usage(llm_calls=1))
