"""Open the run: read the question, and clear what an earlier one left."""

from typing import Any, Final, cast

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from typing_extensions import TypedDict

from crag.errors import QuestionError
from crag.plain import well_formed
from crag.reading import Reading
from crag.settings import Settings
from crag.state import (
    Action,
    AnswerSentence,
    Citation,
    FollowUp,
    FoundHit,
    InputState,
    Outcome,
    PageRecord,
    State,
    Strip,
    Thresholds,
    Usage,
    fresh_usage,
)
from crag.tasks import Posed

REFLECTED: Final[dict[str, Any]] = {
    "approximation": "", "choices": [], "passages": [], "critiques": [], "search": None,
    "reflection": None,
}  # fmt: skip
"""What graphs with reflection write, before they have."""


class OpeningUpdate(TypedDict):
    """Written by `open_run`: the question, with everything from earlier questions cleared.

    What reflection wrote is cleared too, if the thread has it; other graphs never show its keys.
    """

    question: str
    posed: Posed | None
    follow_up: FollowUp | None
    documents: list[Document]
    scores: list[float]
    readings: list[Reading]
    thresholds: Thresholds | None
    action: Action | None
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
    outcome: Outcome | None
    citations: list[Citation]
    further: list[Citation]
    sentences: list[AnswerSentence]
    events: None
    """Clears those of an earlier question."""
    usage: Usage


class OpenRun:
    """Read the question and clear what an earlier one left on the thread: the first node."""

    def run(self, state: State, settings: Settings) -> OpeningUpdate:
        """Open the run.

        Raises:
            QuestionError: the input holds no usable question.
        """
        question = _question(state, settings.max_question_characters)
        opened = OpeningUpdate(
            question=question, posed=posed_apart(question, settings), follow_up=None, documents=[],
            scores=[], readings=[], thresholds=None, action=None, query="",
            confirms=settings.confirm_web, refused=False, hits=[], pages=[], internal=[],
            external=[], knowledge="", answer="", abstained=False, outcome=None, citations=[],
            further=[], sentences=[], events=None, usage=fresh_usage(Usage()),
        )  # fmt: skip
        reflected = {name: empty for name, empty in REFLECTED.items() if name in state}
        return cast("OpeningUpdate", opened | reflected)


def posed_apart(question: str, settings: Settings) -> Posed | None:
    """Return the question with its options split off, or None if there is nothing to split off."""
    split = settings.profile.split
    posed = split(question) if split else None
    return None if posed is None or posed["question"] == question else posed


def _question(state: InputState, longest: int) -> str:
    """Return the last message if a human wrote it, else `question`."""
    messages = state.get("messages") or []
    asked_in_chat = bool(messages) and isinstance(messages[-1], HumanMessage)
    question = messages[-1].text if asked_in_chat else state.get("question")
    if question is None:  # Many clients send null for what is not set.
        question = ""
    if not isinstance(question, str):
        message = f"question must be text, not {type(question).__name__}"
        raise QuestionError(message)
    question = well_formed(question).strip()
    if not question:
        message = "question is empty: give `question`, or `messages` whose last one asks it"
        raise QuestionError(message)
    if len(question) > longest:
        message = (
            f"question has {len(question):,} characters, the limit is {longest:,}: shorten it, "
            "or raise the setting max_question_characters"
        )
        raise QuestionError(message)
    return question
