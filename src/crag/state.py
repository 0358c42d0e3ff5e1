"""The state that flows through the graphs.

All values are plain JSON types, LangChain `Document`s or messages, so that a checkpoint, a remote
client, Studio and a notebook all show the same thing.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import add_messages
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from crag.events import Event
from crag.reflection.records import Choice, Critique, Flag, PassageRecord, SearchRecord
from crag.tasks import Posed

Action = Literal["correct", "incorrect", "ambiguous"]


class Source(TypedDict):
    """Where a strip comes from, precisely enough to open it there."""

    id: str
    title: str
    url: str
    """A path or URL; empty when the retriever gave none."""
    position: str
    """The place within the source, such as ``line 41`` or ``page 3``; may be empty."""


class Strip(TypedDict):
    """A knowledge strip: the unit that refinement keeps or drops (CRAG, Sec. 4.4)."""

    text: str
    source: Source
    score: float | None
    """The evaluator's score against the original question; None where none was asked for."""
    kept: bool
    reason: str
    """Why it was kept or dropped."""


class Citation(TypedDict):
    """One numbered strip that the answer refers to as ``[number]``."""

    number: int
    text: str
    source: Source


class Thresholds(TypedDict):
    """The limits in force; ``lower <= upper``, on the evaluator's own scale (CRAG, Sec. 4.3)."""

    upper: float
    lower: float


class FoundHit(TypedDict):
    """One result of the web search."""

    title: str
    url: str
    snippet: str
    text: str
    """Text of the page where the service returned it, until `read_pages` has taken it over."""


class PageRecord(TypedDict):
    """What became of one page that was found."""

    url: str
    title: str
    status: Literal["read", "cached", "given", "failed"]
    """Fetched, kept on disk, returned by the search service, or not read."""
    detail: str
    """Why it was not read."""
    paragraphs: int
    fetched_bytes: int


class OfferedPassage(PassageRecord):
    """A text that reflection is given: a document, or knowledge that CRAG prepared from several."""

    label: Literal["document", "correct", "incorrect", "ambiguous", "web"]
    """A document as it is, or which knowledge: of documents, of the web, of both, a piece of the
    web."""
    grade: Literal["", "high", "medium", "low"]
    """The evaluator's, for the poster's rule; empty otherwise."""
    strips: list[Strip]
    """What it was made of, each with its source."""


class Reflection(TypedDict):
    """How an answer with reflection came about, beside its choices and critiques."""

    answer: str
    """Without tokens; in long form with ``[n]``, which are passages here."""
    raw: str
    """As the model wrote it, with tokens, without passages."""
    cited: list[int]
    """``[n]`` refers to ``passages[cited[n - 1]]``."""
    score: float
    flags: list[Flag]
    tokens: int
    """Generated, of all candidates together."""


class Usage(TypedDict, total=False):
    """What a run has spent; the updates of all nodes are added up."""

    llm_calls: int
    evaluator_calls: int
    evaluated_texts: int
    searches: int
    pages: int
    """Pages fetched, whether they could be read or not."""
    cached_pages: int
    page_bytes: int
    web_milliseconds: int
    """Spent on searching and reading, not on waiting for a human."""
    input_tokens: int
    output_tokens: int


class FollowUp(TypedDict):
    """A question of a chat that was made self-contained."""

    message_id: str
    """Of the message that asked it."""
    asked: str
    """The question as it was asked."""


class FreshEvents(list[Event]):
    """Events that begin the record of a new question instead of continuing the last one's."""


class FreshUsage(dict[str, int]):
    """Counts that begin at zero for a new question on the same thread."""

    @classmethod
    def of(cls, usage: Usage) -> Usage:
        """Begin with what was spent before the run was opened."""
        return cast("Usage", cls(cast("dict[str, int]", usage)))


def extend_events(recorded: list[Event], new: list[Event]) -> list[Event]:
    """Append `new` events, or begin anew with them when they are `FreshEvents`."""
    return list(new) if isinstance(new, FreshEvents) else [*recorded, *new]


def replace_documents(
    _: list[Document], new: Sequence[Document | Mapping[str, Any]]
) -> list[Document]:
    """Take the `new` documents; a client of a server, such as Studio, writes them as plain JSON.

    Raises:
        InvalidUpdateError: one is no document.
    """
    try:
        return [one if isinstance(one, Document) else Document(**one) for one in new]
    except (TypeError, ValueError) as error:
        message = f"documents must each have a `page_content` and may have `metadata`: {error}"
        raise InvalidUpdateError(message) from None


def add_usage(spent: Usage, new: Usage) -> Usage:
    """Add up counts name by name, or begin anew with `FreshUsage`."""
    counts = {} if isinstance(new, FreshUsage) else dict(spent)
    for name, count in new.items():
        counts[name] = cast("int", counts.get(name, 0)) + cast("int", count)
    return cast("Usage", counts)


@with_config(ConfigDict(use_attribute_docstrings=True))
class InputState(TypedDict, total=False):
    """What a caller gives: a question, or a chat whose last message is the question."""

    question: str
    """What is asked, in plain words; it can be left out where `messages` ask."""
    messages: Annotated[list[AnyMessage], add_messages]
    """A chat instead of a question: its last message is what is asked."""


class OpenState(InputState, total=False):
    """What the first nodes read."""

    follow_up: FollowUp | None
    """The question as it was asked, where `question` was made self-contained from a chat."""
    posed: Posed | None
    """The question without its options, and these; None in tasks whose questions have none. Read by
    `TaskProfile.posed`, which falls back to splitting `question`."""


class State(OpenState, total=False):
    """Everything a run knows; `question` is never overwritten by a rewrite."""

    documents: Annotated[list[Document], replace_documents]
    """At most k documents, best first."""
    scores: list[float]
    """The evaluator's score of each document, in the order of `documents`."""
    thresholds: Thresholds
    action: Action
    """None, as `thresholds`, where nothing was graded."""
    query: str
    """What is searched for on the web."""
    confirms: bool
    """Whether a human is asked before the search: LangGraph keeps no settings until it resumes."""
    refused: bool
    """Whether a human refused the web search."""
    hits: list[FoundHit]
    """What the search found, in the order in which it is read."""
    pages: list[PageRecord]
    """What became of each page, in the order of the hits."""
    internal: list[Strip]
    """All strips of the retrieved documents, kept or not, in document order."""
    external: list[Strip]
    """All strips from the web, kept or not, in the order of the hits; `read_pages` writes them
    unjudged, `select` judged."""
    approximation: str
    """How critiques are approximated; empty for a model with reflection tokens."""
    choices: list[Choice]
    """Whether to retrieve before each segment, and why."""
    passages: list[OfferedPassage]
    """What reflection is given, each text once, as critiques count them."""
    critiques: list[Critique]
    """What the model said of each candidate, in the order in which they were judged."""
    search: SearchRecord | None
    """The beam between two segments of the long form."""
    reflection: Reflection | None
    knowledge: str
    """The kept strips as they were given to the model."""
    answer: str
    abstained: bool
    citations: list[Citation]
    events: Annotated[list[Event], extend_events]
    usage: Annotated[Usage, add_usage]
