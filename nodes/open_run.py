"""Open a run that retrieves nothing."""

from langchain_core.documents import Document
from typing_extensions import TypedDict

from crag.correction.question import read_question
from crag.events import Event
from crag.reading import Reading
from crag.settings import Settings
from crag.state import (
    AnswerSentence,
    Certainty,
    Citation,
    FollowUp,
    FoundHit,
    FreshEvents,
    FreshUsage,
    InputState,
    PageRecord,
    Strip,
    Usage,
)
from crag.tasks import Posed


class OpeningUpdate(TypedDict):
    """Written by the first node: the question, with everything from earlier questions cleared."""

    question: str
    posed: Posed | None
    follow_up: FollowUp | None
    documents: list[Document]
    scores: list[float]
    readings: list[Reading]
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
    certainty: Certainty | None
    citations: list[Citation]
    further: list[Citation]
    sentences: list[AnswerSentence]
    events: list[Event]
    usage: Usage


def opening(question: str, settings: Settings) -> OpeningUpdate:
    """Return the initial state of a run on `question`, with its options split off."""
    split = settings.profile.split
    posed = split(question) if split else None
    is_bare = posed is not None and posed["question"] == question
    return OpeningUpdate(
        question=question,
        posed=None if is_bare else posed,
        follow_up=None,
        documents=[],
        scores=[],
        readings=[],
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
        certainty=None,
        citations=[],
        further=[],
        sentences=[],
        events=FreshEvents(),
        usage=FreshUsage.of(Usage()),
    )


class OpenRun:
    """Read the question and clear what an earlier one left on the thread."""

    def run(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Open the run.

        Raises:
            QuestionError: the input holds no usable question.
        """
        return opening(read_question(state, settings.max_question_characters), settings)
