"""What a reflecting model is asked for, whichever way it is reached."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

Probabilities = Mapping[str, float]
"""Probability of each token of one group at one position; a member that is not there was not
among those the back end could see."""
Ending = Literal["retrieve", "no_retrieve", "continue", "end", "length"]
"""What a segment ended with: one of the three Retrieve tokens, the end of the text, or the most
tokens that were allowed."""


class Passage(NamedTuple):
    """A retrieved text, as it stands between ``<paragraph>`` and ``</paragraph>``."""

    title: str
    text: str


class Prefix(NamedTuple):
    """What a segment continues: the instruction, and what was answered so far."""

    instruction: str
    """The instruction field of the prompt (Self-RAG, Sec. 3.3; the question alone for open QA)."""
    answered: str = ""
    """Earlier segments as the model wrote them, with their reflection tokens, without passages."""
    passage: Passage | None = None
    """The passage of the last segment, which ``[Continue to Use Evidence]`` keeps using."""
    bare_question: str = ""
    """The question where the instruction holds more than that: a task, or options."""

    @property
    def question(self) -> str:
        """What passages are judged for, by a back end that writes after no prompt."""
        return self.bare_question or self.instruction


class Continuation(NamedTuple):
    """What one candidate is generated after."""

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
    """IsRel at the first generated position, whatever was emitted there; None without passage."""
    support: Probabilities | None
    """IsSup where its first token was emitted; None if none was."""
    utility: Probabilities | None
    """IsUse where its first token was emitted; None if none was."""
    mean_log_probability: float
    """Over the tokens of `text`; at most 0."""
    tokens: int
    ending: Ending


class SegmentLimits(NamedTuple):
    """How far one segment may go."""

    max_tokens: int = 100
    whole_answer: bool = False
    """Go on over Retrieve tokens to the end: short form, where the answer is one candidate."""


@runtime_checkable
class ReflectionBackend(Protocol):
    """A model with reflection tokens, or what stands in for one; thread-safe.

    A failure outside us raises `crag.errors.ModelError`.
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
        """Return one greedy candidate for each continuation, in order, generated in one batch.

        Those of several hypotheses come together, with prefixes that differ; no candidate depends
        on what else is in its batch.
        """
        ...

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Do as `decide` without blocking the event loop."""
        ...

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates` without blocking the event loop."""
        ...
