"""What an evaluator service and its clients say to each other: JSON over HTTP, four addresses.

::

    GET  /ok      → {"ok": true}
    GET  /about   → About
    POST /score   EvaluationRequest → Scores
    POST /read    EvaluationRequest → Readings; only where `About.reads`

Each reply to /score and /read holds the `About` of the evaluator that judged, so that its
thresholds belong to its scores even while a service changes to another evaluator. An error has a
status of 400 or above and ``{"detail": "…"}``; 429 and 503 may name in ``Retry-After`` the seconds
to wait. A service that asks for a token takes it as ``Authorization: Bearer``.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from crag.parts import Passage
from crag.reading import Reading
from crag.state import Thresholds

MOST_PASSAGES = 256
"""The most passages of one request; a client with more sends several requests."""
MOST_CHARACTERS = 2_000_000
"""The most characters of question and passages together, unless one passage alone is longer."""
MOST_BYTES = 32 * 2**20
"""The largest body of a request."""
_LONGEST_NAME = 200


class _ServiceMessage(BaseModel):
    model_config = ConfigDict(frozen=True)


class AskedPassage(_ServiceMessage):
    """A passage of a request."""

    title: str = ""
    text: str
    section: str = ""
    """Headings above it, as ``Use > Install``."""


class EvaluationRequest(_ServiceMessage):
    """The body of /score and /read."""

    question: str
    passages: Annotated[list[AskedPassage], Field(max_length=MOST_PASSAGES)]

    @property
    def as_passages(self) -> list[Passage]:
        """The passages as evaluators take them."""
        return [Passage(passage.title, passage.text, passage.section) for passage in self.passages]


class ServedThresholds(_ServiceMessage):
    """The thresholds that the evaluator was calibrated with."""

    upper: FiniteFloat
    lower: FiniteFloat

    @model_validator(mode="after")
    def _in_order(self) -> "ServedThresholds":
        if self.lower > self.upper:
            raise ValueError(f"lower is {self.lower:g}, above upper, {self.upper:g}")
        return self


class About(_ServiceMessage):
    """Which evaluator judges, and how its scores are to be read."""

    name: Annotated[str, Field(max_length=_LONGEST_NAME)]
    thresholds: ServedThresholds
    reads: bool = False
    """Whether it offers /read."""
    quote_threshold: FiniteFloat | None = None
    """The score from which on strips are quoted; only of one that reads."""
    closest_threshold: FiniteFloat | None = None
    """The score from which on a passage is shown as one of the closest; only of one that reads."""
    languages: Annotated[list[str], Field(max_length=_LONGEST_NAME)] = []
    """ISO 639-1 codes of those it reads; empty if unknown."""

    @property
    def limits(self) -> Thresholds:
        """The thresholds as evaluators have them."""
        return Thresholds(upper=self.thresholds.upper, lower=self.thresholds.lower)


class Scores(_ServiceMessage):
    """The reply of /score."""

    about: About
    scores: list[FiniteFloat | None]
    """In the order of the passages; null for one that could not be scored."""


class Readings(_ServiceMessage):
    """The reply of /read."""

    about: About
    readings: list[Reading]
    """In the order of the passages."""
