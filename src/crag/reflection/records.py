"""What a reflection leaves behind, as plain JSON: decisions, critiques, and the outcome."""

from typing import Literal

from typing_extensions import TypedDict

from crag.reflection.backend import Ending

Flag = Literal[
    "relevance_missing",
    "support_missing",
    "utility_missing",
    "retrieve_missing",
    "member_missing",
    "no_support_token",
    "no_utility_token",
    "no_sequence_score",
    "no_retrieval_score",
    "empty",
    "cut",
    "merged",
    "invented_passage",
    "no_passages",
    "duplicate_passages",
    "passages_used_up",
    "not_generated",
    "constraint_fallback",
    "repeated_segment",
    "all_removed",
    "depth_limit",
    "token_limit",
    "time_limit",
    "model_failed",
]
"""Something was not as it should be, and has its defined result:

- ``…_missing``: of a whole group nothing was seen, or (member) some token of a group was not seen;
- ``no_…_token``: the model wrote no critique of that kind, which counts 0;
- ``no_sequence_score``: the log-probability was no number; it counts 0;
- ``no_retrieval_score``: scored without passage: sequence and utility only;
- ``empty``: nothing but tokens was generated; such a text wins against nothing;
- ``cut``: the most tokens were reached before an end;
- ``merged``: another hypothesis that says the same scored at least as high;
- ``invented_passage``: the model went on into a passage of its own, which is left out;
- ``no_passages``, ``passages_used_up``: nothing to read, so it was answered without;
- ``not_generated``: the passage was not read: no probabilities, IsRel and IsSup None, the rest 0;
- ``constraint_fallback``: hard constraints left nothing, so the soft ranking counts;
- ``repeated_segment``, ``all_removed``: at assembly, a segment or the whole answer was left out;
- ``…_limit``, ``model_failed``: the search ended early, and the best answer so far is returned.
"""
Action = Literal["retrieve", "continue", "no_retrieve"]
"""Ask for passages, keep the last one, or go on without."""


class Choice(TypedDict):
    """Whether to retrieve before one segment, and why."""

    segment: int
    """From 0; short form has only this one."""
    hypothesis: int
    """Place in the beam, from 0."""
    action: Action
    ratio: float | None
    """What was compared with delta; None if the mode alone decided, or if it is
    infinite."""
    emitted: str
    probabilities: dict[str, float]
    """Of the Retrieve tokens that were seen, as they were given."""
    why: str
    flags: list[Flag]


class Critique(TypedDict):
    """One candidate: what the model said of it, and what became of it."""

    segment: int
    hypothesis: int
    """Place in the beam of what it continues."""
    passage: int | None
    """Index into the outcome's passages; None without."""
    title: str
    text: str
    """As generated, with tokens."""
    probabilities: dict[str, dict[str, float]]
    """Normalised, by group; a group that was not seen is not there."""
    relevance: float | None
    """0 to 1; None without passage, or where nothing was generated."""
    support: float | None
    """0 to 1; None without passage, or where nothing was generated."""
    utility: float
    """-1 to 1."""
    sequence: float
    """0 to 1."""
    total: float
    kept: bool
    """Stayed in the beam after its segment; in short form the same as `chosen`, by the poster's
    rule: competed as an answer."""
    chosen: bool
    """Stands in the answer, or has the same text as it."""
    why: str
    flags: list[Flag]


class PassageRecord(TypedDict):
    """A passage that was offered to the model."""

    title: str
    text: str


class SegmentRecord(TypedDict):
    """One segment of a hypothesis."""

    text: str
    """With tokens; without the Retrieve token and passage it was generated after."""
    shown: str
    """Without tokens."""
    passage: int | None
    score: float
    critique: int
    """Index of its critique."""
    is_irrelevant: bool
    """The model said that the passage does not serve."""
    is_unsupported: bool
    """The model said that the passage does not support it."""


class HypothesisRecord(TypedDict):
    """One hypothesis of the beam, best first."""

    before: str
    """The context of the last segment."""
    segments: list[SegmentRecord]
    done: bool
    ending: Ending
    """What the last segment ended with."""


class SearchRecord(TypedDict):
    """A beam search between two rounds; choices, critiques and passages are kept beside it."""

    depth: int
    """Rounds so far."""
    pool: list[HypothesisRecord]
    static: list[int] | None
    """The passages that every segment is offered, by index; None: not asked for yet."""
    flags: list[Flag]
    tokens: int
    seconds: float
    """Spent so far."""
    ended: Flag | None
    """What ended the search before its depth."""
    over: bool
    """No round will follow."""


class Outcome(TypedDict):
    """The answer and how it came about."""

    answer: str
    """Without tokens; in long form with ``[n]``."""
    raw: str
    """As the model wrote it, with tokens, without passages."""
    passages: list[PassageRecord]
    """Each passage once, in the order it first came."""
    cited: list[int]
    """``[n]`` refers to ``passages[cited[n - 1]]``."""
    score: float
    choices: list[Choice]
    critiques: list[Critique]
    flags: list[Flag]
    tokens: int
    """Generated, of all candidates together."""
