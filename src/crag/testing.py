"""Fakes for every part, for your tests and ours.

Each fake records its calls. None loads a model or uses the network.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from crag.correction.scoring import with_title
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
from crag.reflection_tokens import NO_RETRIEVAL, RELEVANCE, RETRIEVAL, SUPPORT, UTILITY
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


class FakeEvaluator:
    """Score texts by one number for all, by what they contain, or by a function."""

    def __init__(
        self,
        score: float | Mapping[str, float] | Callable[[str, str], float] = 1.0,
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
        if callable(self._score):
            return self._score(question, text)
        if isinstance(self._score, Mapping):
            found = (score for part, score in self._score.items() if part in text)
            return next(found, self._otherwise)
        return self._score


class FakeReadingEvaluator(FakeEvaluator):
    """Score as `FakeEvaluator` does, and mark as evidence what stands in `evidence`.

    The phrases are likely evidence (0.95), every other character is not (0.02). The first of them
    that a passage holds is its answer span.
    """

    def __init__(
        self,
        score: float | Mapping[str, float] | Callable[[str, str], float] = 0.9,
        *evidence: str,
        quote_threshold: float = 0.5,
        **options: Any,
    ) -> None:
        super().__init__(score, **options)
        self._evidence = evidence
        self.quote_threshold = quote_threshold
        self.read_passages: list[list[Passage]] = []
        """The passages of each call of `read`."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order, or raise the given error."""
        self.read_passages.append(list(passages))
        titled = [with_title(passage.title, passage.text) for passage in passages]
        scores = self.score(question, titled)
        return [self._reading(*pair) for pair in zip(scores, passages, strict=True)]

    def _reading(self, score: float, passage: Passage) -> Reading:
        text = passage.text
        if not text:
            return Reading(score=-1.0, evidence="", span=None)
        spans = [
            Span(start=text.index(phrase), end=text.index(phrase) + len(phrase), score=0.9)
            for phrase in self._evidence
            if phrase in text
        ]
        inside = [any(one["start"] <= at < one["end"] for one in spans) for at in range(len(text))]
        evidence = compressed(range(1, len(text) + 1), [0.95 if one else 0.02 for one in inside])
        return Reading(score=score, evidence=evidence, span=next(iter(spans), None))


class FakeSearcher:
    """Return the same hits for every query, or raise."""

    def __init__(self, hits: Sequence[Hit] = (), *, error: Exception | None = None) -> None:
        self._hits, self._error = list(hits), error
        self.queries: list[str] = []
        """The queries, in order."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` of the hits."""
        self.queries.append(query)
        if self._error is not None:
            raise self._error
        return self._hits[:limit]


class FakeReader:
    """Return the given paragraphs of an address, the problem "network", or raise."""

    def __init__(
        self, pages: Mapping[str, Sequence[str]] | None = None, *, error: Exception | None = None
    ) -> None:
        self._pages, self._error = dict(pages or {}), error
        self.calls: list[tuple[list[str], ReadingLimits]] = []
        """Addresses and limits of each call."""

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each address, in order."""
        self.calls.append((list(urls), limits))
        if self._error is not None:
            raise self._error
        return [self._page(url) for url in urls]

    def _page(self, url: str) -> Page:
        paragraphs = self._pages.get(url)
        if paragraphs is None:
            return Page(url, problem="network", detail="there is no such page")
        return Page(url, "A page", tuple(paragraphs))


class FakeQuoter:
    """Quote the first strip whole, sure or not, or nothing."""

    def __init__(self, *, finds: bool = True, sure: bool = True) -> None:
        self._finds, self._sure = finds, sure

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Return one quotation, or none."""
        del question
        if not (self._finds and strips):
            return []
        return [Quotation(strips[0]["text"], 0, 1.0, sure=self._sure)]


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
        None
        if relevance is None
        else dict(zip(RELEVANCE, (1 - relevance, relevance), strict=True)),
        None if support is None else dict(zip(SUPPORT, (support, 0.0, 1 - support), strict=True)),
        None if utility is None else {t: float(t == f"[Utility:{utility}]") for t in UTILITY},
        mean_log_probability,
        len(text.split()),
        ending,
    )


class FakeReflection:
    """Return the candidates of a table or function, and decisions by what was answered so far.

    A prefix that no table contains gets the decision `otherwise`, or an empty candidate. After
    `fails_after` calls all others fail.
    """

    approximation = ""

    def __init__(
        self,
        candidates: Table | Callable[[Prefix, Passage | None], Candidate],
        decisions: Mapping[str, Decision] | None = None,
        *,
        otherwise: Decision | None = None,
        fails_after: int | None = None,
    ) -> None:
        self._candidates, self._decisions = candidates, dict(decisions or {})
        self._otherwise = otherwise or fake_decision(0.9)
        self._fails_after, self._calls = fails_after, 0
        self.decided: list[Prefix] = []
        """What each decision was asked for."""
        self.rounds: list[tuple[list[Continuation], SegmentLimits]] = []
        """What each call for candidates was asked for, and within which limits."""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the decisions of the table."""
        self._call()
        self.decided += prefixes
        return [self._decisions.get(prefix.answered, self._otherwise) for prefix in prefixes]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one candidate for each continuation, in order."""
        self._call()
        self.rounds.append((list(continuations), limits))
        return [self._candidate(*continuation) for continuation in continuations]

    def _candidate(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        if callable(self._candidates):
            return self._candidates(prefix, passage)
        key = (prefix.answered, passage.text if passage else None)
        return self._candidates.get(key, Candidate("", {}, None, None, 0.0, 0, "end"))

    def _call(self) -> None:
        if self._calls == self._fails_after:
            raise ModelError("fake", "failed", "it is set to fail")
        self._calls += 1
        spend(Usage(llm_calls=1))
