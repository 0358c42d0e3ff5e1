"""The parts of a graph: LangChain's interfaces, and Protocols where LangChain has none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from langchain_core.language_models import LanguageModelInput
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from crag.errors import CragError, PageProblem
from crag.prompts import PACKAGED, Prompts
from crag.reading import Reading
from crag.state import Ending, Strip, Thresholds


class Passage(NamedTuple):
    """A titled text: a document, a strip, or what a reflecting model reads as one paragraph."""

    title: str
    text: str
    section: str = ""
    """Headings above it, as ``Use > Install``; may be empty."""


@runtime_checkable
class Evaluator(Protocol):
    """Judge how well texts serve a question; called from several threads at once."""

    @property
    def thresholds(self) -> Thresholds:
        """The upper and lower threshold it was calibrated with, on the scale of its scores."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in the order of `texts`; higher is better.

        The text of a titled passage is ``title // text``. An empty text scores -1.0; NaN means that
        a text could not be scored, which is recorded.
        """
        ...


@runtime_checkable
class ReadingEvaluator(Evaluator, Protocol):
    """An evaluator that also finds the relevant part of a passage; graphs only call `read`.

    It may offer `similarity(question, texts) → list[float]`, cosines in [-1, 1] of their meanings:
    of strips that are read as nearly equal, the closest one is quoted first.
    """

    @property
    def quote_threshold(self) -> float:
        """The score, in [-1, 1], from which on strips are quoted as an answer."""
        ...

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order; called from several threads at once.

        An empty text is read as score -1.0, no evidence and no span.
        """
        ...


def is_reading(evaluator: Evaluator) -> TypeGuard[ReadingEvaluator]:
    """Return whether an evaluator reads; `isinstance` would run its code to tell."""
    return hasattr(evaluator, "read")


class Hit(NamedTuple):
    """One result of a web search."""

    title: str
    url: str
    snippet: str
    text: str = ""
    """Text of the whole page where the service returned it; such a page is not fetched."""


SEARCHER_HINT = "set TAVILY_API_KEY or SEARXNG_URL, or CRAG_SEARCH=wikipedia"
"""How to get a searcher from the environment."""


@runtime_checkable
class WebSearcher(Protocol):
    """Search the web; raises `crag.errors.SearchError` when it cannot."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        ...


class ReadingLimits(NamedTuple):
    """Limits for reading the pages of one question."""

    seconds: float
    """For all pages together."""
    page_seconds: float = 8.0
    page_bytes: int = 3_000_000
    """For one page, after decompression."""
    robots: bool = True
    """Skip pages that a site's robots.txt forbids."""


class Page(NamedTuple):
    """The result of reading one URL: a title and paragraphs, or the problem."""

    url: str
    """As requested."""
    title: str = ""
    paragraphs: tuple[str, ...] = ()
    problem: PageProblem | None = None
    detail: str = ""
    """The problem in words for a user."""


@runtime_checkable
class PageReader(Protocol):
    """Read web pages; a page that cannot be read is returned with its problem, never raised."""

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each URL, in order."""
        ...


class Quotation(NamedTuple):
    """A passage of a strip that answers the question."""

    text: str
    strip: int
    """Index of its strip in the list passed to `quote`."""
    score: float
    place: tuple[int, int] | None = None
    """Where it stands in the strip's text; None stands for anywhere in it."""
    span: tuple[int, int] | None = None
    """Where in the strip's text the answer itself stands, if that is within `place`."""
    sure: bool = True
    """Whether it answers; else it is one of the closest passages."""
    lead: str = ""
    """The heading that names its subject, where the text does not; shown above it."""
    disagrees: bool = False
    """Whether another document gives another value for the same thing."""


@runtime_checkable
class Quoter(Protocol):
    """Answer without a language model, by quoting."""

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Return the passages to quote, the best first; all of them are sure, or none is."""
        ...


@runtime_checkable
class Attributor(Protocol):
    """Say how far passages support the sentences of an answer; without a language model."""

    @property
    def threshold(self) -> float:
        """The degree, in [0, 1], from which on a passage supports a sentence."""
        ...

    def support(
        self, question: str, sentences: Sequence[str], passages: Sequence[Passage]
    ) -> list[list[float]]:
        """Return for each sentence, without citations, a degree in [0, 1] for each passage."""
        ...


Probabilities = Mapping[str, float]
"""Probability of each token of one group of reflection tokens at one position. An absent token was
not visible to the back end."""


class Prefix(NamedTuple):
    """The context of a segment: the instruction, and the answer so far."""

    instruction: str
    """The instruction field of the prompt (Self-RAG, Sec. 3.3; the question alone for open QA)."""
    answered: str = ""
    """Earlier segments as the model wrote them, with their reflection tokens, without passages."""
    passage: Passage | None = None
    """The passage of the last segment, which ``[Continue to Use Evidence]`` keeps using."""
    bare_question: str = ""
    """The question, if the instruction contains more: a task, or options."""

    @property
    def question(self) -> str:
        """The question by which back ends without the tuned prompt judge passages."""
        return self.bare_question or self.instruction


class Continuation(NamedTuple):
    """The context of one candidate."""

    prefix: Prefix
    passage: Passage | None
    """None stands for ``[No Retrieval]``: a candidate without a passage."""


def continuations(prefix: Prefix, passages: Sequence[Passage | None]) -> list[Continuation]:
    """Return one continuation of a prefix for each passage, in order."""
    return [Continuation(prefix, passage) for passage in passages]


class Decision(NamedTuple):
    """Whether to retrieve before the next segment."""

    retrieve: Probabilities
    """Over the tokens of the group Retrieve, at the first position after the prefix."""
    emitted: str
    """The most probable token there, of the group or not."""


class Candidate(NamedTuple):
    """One segment, generated for one passage or without one."""

    text: str
    """As generated, with reflection tokens, up to but without the Retrieve token that ended it."""
    relevance: Probabilities | None
    """IsRel at the first generated position, whichever token it is; None without a passage."""
    support: Probabilities | None
    """IsSup where its first token was emitted; None if none was."""
    utility: Probabilities | None
    """IsUse where its first token was emitted; None if none was."""
    mean_log_probability: float
    """Over the tokens of `text`; at most 0."""
    tokens: int
    ending: Ending
    end_log_probability: float | None = None
    """Of the token that ended it; None if none did, or the back end does not know."""
    retrieve: tuple[Probabilities, ...] = ()
    """Of each Retrieve token within `text`, in order, the distribution of its group there."""
    sure: bool = True
    """Whether it is an answer; a back end that quotes may have nothing but the closest passage."""
    quoted: bool = False
    """Whether it is a quotation from a passage that has the question's names."""


class SegmentLimits(NamedTuple):
    """Limits of one segment."""

    max_tokens: int = 100
    whole_answer: bool = False
    """Do not stop at Retrieve tokens: in short form the answer is one candidate."""
    is_draft: bool = False
    """Go on after the prefix as it is: without a passage no ``[No Retrieval]`` is forced."""


@runtime_checkable
class ReflectionBackend(Protocol):
    """A model with reflection tokens, or an approximation of one; thread-safe.

    A failure of the model or its server raises `crag.errors.ModelError`.
    """

    @property
    def approximation(self) -> str:
        """How critiques are approximated, in a few words; empty for a model with the tokens."""
        ...

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one batch."""
        ...

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order, by one batch.

        Prefixes may differ; no candidate depends on the others of its batch.
        """
        ...


ChatModel = Runnable[LanguageModelInput, Any]
"""Any LangChain chat model, or a Runnable that takes messages and returns a message or text."""


def _packaged(path: str, *given: Any) -> Any:
    """Make a packaged part; it is loaded here, since parts know no adapter."""
    return resolve_name(path)(*given)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of one graph; what is left out is the packaged one, if there is one.

    Raises:
        CragError: a part has not the method by which it is called, so every run would fail.
    """

    retriever: BaseRetriever
    """Finds documents for a question. A vector store's retriever is asked for `Settings.k`; of any
    other one the first k documents are used."""
    evaluator: Evaluator = None  # type: ignore[assignment]
    """Scores documents and strips; the packaged one reads, and loads on first use."""
    model: ChatModel | None = None
    """Rewrites queries and writes the answer; without one, answers are quoted."""
    quoter: Quoter | None = None
    """Answers when there is no model, and when the model fails or finds nothing; packaged where
    there is no model, or no evaluator is given."""
    attributor: Attributor | None = None
    """Finds the strip that supports a sentence of a written answer; packaged where no evaluator is
    given. Without it, words decide."""
    searcher: WebSearcher | None = None
    """The second source of knowledge; without it the branch records an event and goes on."""
    reader: PageReader | None = None
    """Reads the pages that a search found; without it their snippets are used."""
    reflection: ReflectionBackend | None = None
    """Writes and critiques answers, for Self-RAG and Self-CRAG; the packaged one quotes."""
    prompts: Prompts = PACKAGED
    """What `model` is asked with; ``Prompts.from_folder(…)`` replaces them. Evaluators and back
    ends of reflection that ask a model take their own."""

    def __post_init__(self) -> None:
        is_left_out = self.evaluator is None
        if is_left_out:
            self._set("evaluator", _packaged("crag.evaluators:load_evaluator"))
        for name, method in _CALLED_BY.items():
            part = getattr(self, name)
            if part is None or (hasattr(part, method) and not isinstance(part, type)):
                continue
            kind = f"the class {part.__name__}" if isinstance(part, type) else type(part).__name__
            hint = ", such as its as_retriever()" if hasattr(part, "as_retriever") else ""
            raise CragError(f"Parts({name}=…) cannot be {kind}: give what has `{method}`{hint}")
        if is_left_out or self.model is None:
            self._set("quoter", self._quoting())
        if is_left_out and self.model is not None and self.attributor is None:
            self._set("attributor", _packaged("crag.evaluators:ReaderAttributor", self.evaluator))

    def _set(self, name: str, part: Any) -> None:
        object.__setattr__(self, name, part)

    def reflection_or_packaged(self) -> ReflectionBackend:
        """Return the reflection back end, or the packaged one, which asks no model."""
        path = "crag.reflection.backends.embedded:EmbeddedReflection"
        return self.reflection or _packaged(path, self.evaluator, self._quoting())

    def _quoting(self) -> Any:
        return self.quoter or _packaged("crag.generation:ExtractiveAnswerer", self.evaluator)


_CALLED_BY = {
    "retriever": "invoke", "evaluator": "score", "model": "invoke", "quoter": "quote",
    "attributor": "support", "searcher": "search", "reader": "read", "reflection": "decide",
    "prompts": "render",
}  # fmt: skip
"""The method by which each part is called."""
