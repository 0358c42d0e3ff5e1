"""Settings of Self-RAG for one run.

Where we differ from the released code, a name in `compat` restores its behaviour: a table in
`docs/method/self-rag.md` says which.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from crag.reflection_tokens import NO_SUPPORT, RELEVANCE, SUPPORT, UTILITY

Form = Literal["short", "long", "poster"]
Mode = Literal["adaptive", "always", "never", "hard"]
Accumulation = Literal["sum", "mean", "product"]
Compat = Literal[
    "released_ratio", "released_utility_weight", "released_text", "missing_group_half",
    "desired_token_only", "share_of_three", "end_token_counts", "minus_100_relevance",
    "zero_utility", "fixed_weights", "sibling_leak", "whole_continuation", "deepest_level",
    "depth_counts_root", "released_search", "released_remap", "released_ranking",
    "released_citations", "released_biography", "cut_at_blank_line", "released_draft",
]  # fmt: skip


class CritiqueWeights(NamedTuple):
    """The weight of each critique in a score (Self-RAG, Sec. 3.3 and Appendix A.3)."""

    relevance: float = 1.0
    support: float = 1.0
    utility: float = 0.5


def _separated(given: object) -> object:
    """Split text of a command line into names at the commas."""
    if isinstance(given, str):
        return [name.strip() for name in given.split(",") if name.strip()]
    return given


class ReflectionSettings(BaseModel):
    """How Self-RAG decides, searches and scores: a part of the settings of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    form: Form = "short"
    """Self-RAG: one candidate for each passage and the best wins (short), segments found by a beam
    search (long), or the poster's rule: document by document until an answer is good enough."""
    retrieval_mode: Mode = "adaptive"
    """Self-RAG: retrieve if the probability says so, always, never, or if the token is emitted
    (hard)."""
    delta: float = Field(default=0.2, ge=0, le=1)
    """Self-RAG, adaptive: retrieve if the share of the token Retrieval is above this."""
    poster_fallback: Literal["abstain", "best_effort"] = "abstain"
    """Poster: without a passage of use, abstain, and of answers that are not good enough give the
    best; or as on the poster, in both cases answer afresh from the model's own knowledge, and if
    that says nothing give the best of what was written."""
    segment_retrieval: Literal["static", "dynamic"] = "static"
    """Self-RAG, long form: the same passages for every segment, or a search for each. Self-CRAG
    prepares its knowledge once, whichever is set."""
    skip_used_passages: bool = False
    """Self-RAG, long form: do not offer a passage again to a hypothesis that has used it."""

    weight_relevance: float = Field(default=1.0, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsRel counts in a score."""
    weight_support: float = Field(default=1.0, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsSup counts in a score."""
    weight_utility: float = Field(default=0.5, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsUse counts in a score."""
    sequence_score: bool = True
    """Self-RAG: add exp of the mean log-probability to a score."""
    accumulation: Accumulation = "mean"
    """Self-RAG, long form: how the scores of segments become that of an answer."""
    constraints: Literal["soft", "hard"] = "soft"
    """Self-RAG: weigh critiques only, or drop candidates with an undesired token."""
    undesired: Annotated[frozenset[str], BeforeValidator(_separated)] = frozenset({NO_SUPPORT})
    """Self-RAG: the critique tokens that hard constraints drop."""
    ignore_no_support: bool = False
    """Self-RAG, long form: leave unsupported segments out of the final answer."""

    beam_width: int = Field(default=2, ge=1, le=64)
    """Self-RAG, long form: hypotheses kept after each segment."""
    max_depth: int = Field(default=6, ge=1, le=64)
    """Self-RAG, long form: the most segments of an answer."""
    max_segment_tokens: int = Field(default=100, ge=1, le=100_000)
    """Self-RAG: the longest segment; in short form the longest answer."""
    max_reflection_tokens: int = Field(default=20_000, ge=1, le=10_000_000)
    """Self-RAG, long form and poster: budget of generated tokens of all candidates together."""
    max_reflection_seconds: float = Field(default=300.0, gt=0, le=86_400)
    """Self-RAG, long form and poster: nothing more is generated later than this."""
    compat: Annotated[frozenset[Compat], BeforeValidator(_separated)] = frozenset()
    """Self-RAG: released quirks to bring back, by name."""

    @property
    def weights(self) -> CritiqueWeights:
        """What each critique counts."""
        return CritiqueWeights(self.weight_relevance, self.weight_support, self.weight_utility)

    @field_validator("undesired")
    @classmethod
    def _are_critiques(cls, tokens: frozenset[str]) -> frozenset[str]:
        known = [*RELEVANCE, *SUPPORT, *UTILITY]
        unknown = tokens.difference(known)
        if unknown:
            message = f"no critique tokens: {', '.join(sorted(unknown))}; there are "
            raise ValueError(message + ", ".join(known))
        return tokens
