"""The part of the state that each node writes, and the state in which a run begins."""

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from crag.events import Event
from crag.reflection.records import Choice, Critique, SearchRecord
from crag.state import (
    Action,
    Citation,
    FollowUp,
    FoundHit,
    FreshEvents,
    FreshUsage,
    OfferedPassage,
    PageRecord,
    Reflection,
    Strip,
    Thresholds,
    Usage,
)


class OpeningUpdate(TypedDict):
    """Written by the first node: the question, and nothing left of an earlier one on the thread."""

    question: str
    follow_up: FollowUp | None
    documents: list[Document]
    scores: list[float]
    query: str
    confirms: bool
    refused: bool
    hits: list[FoundHit]
    pages: list[PageRecord]
    internal: list[Strip]
    external: list[Strip]
    knowledge: str
    answer: str
    abstained: bool
    citations: list[Citation]
    events: list[Event]
    usage: Usage


def opening(question: str) -> OpeningUpdate:
    """Return the state in which a run begins to work on `question`."""
    return OpeningUpdate(
        question=question,
        follow_up=None,
        documents=[],
        scores=[],
        query="",
        confirms=False,
        refused=False,
        hits=[],
        pages=[],
        internal=[],
        external=[],
        knowledge="",
        answer="",
        abstained=False,
        citations=[],
        events=FreshEvents(),
        usage=FreshUsage.of(Usage()),
    )


class DecideUpdate(TypedDict):
    """Written by `decide`, with an `OpeningUpdate` where it opens the run."""

    thresholds: None
    action: None
    """Nothing is left of an earlier grading: this question may do without."""
    approximation: str
    choices: list[Choice]
    passages: list[OfferedPassage]
    critiques: list[Critique]
    search: SearchRecord | None
    reflection: Reflection | None
    events: list[Event]
    usage: Usage


class DocumentsUpdate(TypedDict):
    """Written by `retrieve` where another node opened the run."""

    documents: list[Document]
    events: list[Event]


class OfferUpdate(TypedDict):
    """Written by `offer`."""

    passages: list[OfferedPassage]


class ReflectUpdate(TypedDict):
    """Written by `compete`, `extend` and `scan`; `reflection` is None while a search goes on."""

    approximation: str
    choices: list[Choice]
    passages: list[OfferedPassage]
    critiques: list[Critique]
    search: SearchRecord | None
    reflection: Reflection | None
    events: list[Event]
    usage: Usage


class ConcludeUpdate(TypedDict):
    """Written by `conclude`."""

    knowledge: str
    answer: str
    abstained: bool
    citations: list[Citation]
    messages: list[AnyMessage]
    events: list[Event]


class GradeUpdate(TypedDict):
    """Written by `grade`."""

    scores: list[float]
    thresholds: Thresholds
    action: Action
    events: list[Event]
    usage: Usage


class InternalUpdate(TypedDict):
    """Written by `refine` and `keep`."""

    internal: list[Strip]
    events: list[Event]
    usage: Usage


class RewriteUpdate(TypedDict):
    """Written by `rewrite`."""

    query: str
    confirms: bool
    events: list[Event]
    usage: Usage


class ConfirmUpdate(TypedDict):
    """Written by `confirm`."""

    query: str
    refused: bool
    events: list[Event]


class SearchUpdate(TypedDict):
    """Written by `search`."""

    hits: list[FoundHit]
    events: list[Event]
    usage: Usage


class ReadUpdate(TypedDict):
    """Written by `read`: what was found as strips that nobody has judged yet."""

    hits: list[FoundHit]
    pages: list[PageRecord]
    external: list[Strip]
    events: list[Event]
    usage: Usage


class ExternalUpdate(TypedDict):
    """Written by `select`."""

    external: list[Strip]
    events: list[Event]
    usage: Usage


class GenerateUpdate(TypedDict):
    """Written by `generate`; `messages` stays empty unless the question came as one."""

    knowledge: str
    answer: str
    abstained: bool
    citations: list[Citation]
    messages: list[AnyMessage]
    events: list[Event]
    usage: Usage
