"""What a chat model is asked to fill in when it reflects without tokens, and how it is read.

Labels come from these fields alone; whatever the text field holds is text.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator

WORST, BEST = 1, 5


def _plain(label: object) -> object:
    return label.strip(" []").casefold() if isinstance(label, str) else label


_Plain = BeforeValidator(_plain)
First = Annotated[Literal["yes", "no"], _Plain]
Later = Annotated[Literal["yes", "no", "continue"], _Plain]
Relevance = Annotated[Literal["relevant", "irrelevant"], _Plain]
Support = Annotated[Literal["fully", "partially", "none"], _Plain]
Next = Annotated[Literal["retrieve", "continue", "no_retrieve", "end"], _Plain]
_RELEVANCE = "Whether the passage helps to answer"
_TEXT = "The text asked for, without marks or citations"
_SUPPORT = "How far the passage bears out what the text states"
_UTILITY = "A whole number from 1 (hardly on the subject) to 5 (complete)"
_NEXT = "What comes after this text"


class Retrieval(BaseModel):
    """Whether to look something up."""

    retrieval: First = Field(description="Whether looking something up would help")


class NextRetrieval(BaseModel):
    """Whether to look something up for the next sentence."""

    retrieval: Later = Field(description="What the next sentence needs")


class _Graded(BaseModel):
    # Bounds are checked apart: not every provider takes them in a schema.
    @field_validator("utility", check_fields=False)
    @classmethod
    def _is_grade(cls, utility: int) -> int:
        if not WORST <= utility <= BEST:
            message = f"the grade must be from {WORST} to {BEST}"
            raise ValueError(message)
        return utility


class Answer(_Graded):
    """An answer without a passage."""

    text: str = Field(description=_TEXT)
    utility: int = Field(description=_UTILITY)


class Segment(Answer):
    """A sentence without a passage."""

    next: Next = Field(description=_NEXT)


class JudgedAnswer(_Graded):
    """An answer from a passage, judged."""

    relevance: Relevance = Field(description=_RELEVANCE)
    text: str = Field(description=_TEXT)
    support: Support = Field(description=_SUPPORT)
    utility: int = Field(description=_UTILITY)


class JudgedSegment(JudgedAnswer):
    """A sentence from a passage, judged."""

    next: Next = Field(description=_NEXT)


Form = Retrieval | NextRetrieval | Answer | JudgedAnswer
AnyForm = TypeVar("AnyForm", bound=BaseModel)


def filled(form: type[AnyForm], reply: str) -> AnyForm | None:
    """Read the one JSON object of a reply, or return None if it does not fill in the form.

    What a reasoning model wrote before its reply is passed over, as are fences and courtesies.
    """
    text = reply.rpartition("</think>")[2]
    try:
        return form.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError:
        return None
