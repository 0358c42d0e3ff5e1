"""What a graph is built from: LangChain's interfaces, and Protocols where LangChain has none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from langchain_core.language_models import LanguageModelInput
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from crag.errors import CragError, PageProblem
from crag.queries import LONGEST
from crag.reading import Passage, Reading
from crag.reflection.backend import ReflectionBackend
from crag.state import Strip, Thresholds


@runtime_checkable
class Evaluator(Protocol):
    """Judge how well texts serve a question."""

    @property
    def thresholds(self) -> Thresholds:
        """The upper and lower threshold it was calibrated with, on the scale of its scores."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in the order of `texts`; higher is better.

        An empty text scores -1.0; a score that is not a number says that the text could not be
        judged, which is recorded. Called from several threads at once.
        """
        ...


@runtime_checkable
class ReadingEvaluator(Evaluator, Protocol):
    """An evaluator that also says which part of a passage serves, in the same pass."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order, whatever its length.

        An empty text is read as score -1.0, no evidence and no span. Called from several threads
        at once.
        """
        ...


class Hit(NamedTuple):
    """One result of a web search."""

    title: str
    url: str
    snippet: str
    text: str = ""
    """Text of the whole page where the service returned it; such a page is not fetched."""


@runtime_checkable
class WebSearcher(Protocol):
    """Search the web; raises `crag.errors.SearchError` when it cannot."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        ...

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        ...


def longest_query(searcher: WebSearcher | None) -> int:
    """Return how many characters a query may have: what the searcher's `longest_query` says."""
    return int(getattr(searcher, "longest_query", LONGEST))


class ReadingLimits(NamedTuple):
    """What reading the pages of one question may cost, and how it is done."""

    seconds: float
    """For all pages together."""
    page_seconds: float
    bytes: int
    """For all pages together, after decompression."""
    page_bytes: int
    robots: bool = True
    """Leave out what a site's robots.txt forbids."""
    per_site: int = 4
    """Requests to one site at the same time."""
    cache_hours: float = 24.0
    """Age up to which a page kept on disk serves; 0: nothing is read from there or written."""


class Page(NamedTuple):
    """What reading one URL brought: titled paragraphs, or the problem."""

    url: str
    """As it was asked for."""
    title: str = ""
    paragraphs: tuple[str, ...] = ()
    fetched_bytes: int = 0
    """After decompression; 0 from the cache."""
    cached: bool = False
    problem: PageProblem | None = None
    detail: str = ""
    """The problem in words for a user."""


@runtime_checkable
class PageReader(Protocol):
    """Read web pages; a page that cannot be read is returned with its problem, never raised."""

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each URL, in order."""
        ...

    async def aread(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Do the same without blocking the event loop."""
        ...


class Quotation(NamedTuple):
    """A passage of a strip that answers the question."""

    text: str
    strip: int
    """Index of the strip it was taken from, in the list that was given."""
    score: float


@runtime_checkable
class Quoter(Protocol):
    """Answer without a language model, by quoting."""

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Return the best-supported passages, in the order of the strips; none if none serves."""
        ...


ChatModel = Runnable[LanguageModelInput, Any]
"""Any LangChain chat model, or a Runnable that takes messages and returns a message or text."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of one graph; each can be replaced by the user's own."""

    retriever: BaseRetriever
    """Finds documents for a question. A vector store's retriever is asked for `Settings.k`; of any
    other one the first k documents are used."""
    evaluator: Evaluator
    """Scores documents and strips."""
    model: ChatModel | None = None
    """Rewrites queries and writes the answer."""
    quoter: Quoter | None = None
    """Answers when there is no model, and when the model fails."""
    searcher: WebSearcher | None = None
    """The second source of knowledge; without it the branch records an event and goes on."""
    reader: PageReader | None = None
    """Reads the pages that a search found; without it their snippets serve."""
    reflection: ReflectionBackend | None = None
    """Writes and critiques answers for Self-RAG and Self-CRAG, which cannot do without."""

    def __post_init__(self) -> None:
        if self.model is None and self.quoter is None:
            message = (
                "Parts need a `model` (any LangChain chat model) or a `quoter` "
                "(crag.generation.ExtractiveAnswerer works without a key)"
            )
            raise CragError(message)
