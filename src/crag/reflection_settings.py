"""Settings of Self-RAG for one run, and the quirks of the released code by name.

Where we differ from the released code, a name in `compat` restores its behaviour:

name                     released (or published)                   ours
------------------------ ----------------------------------------- -------------------------------
released_ratio           short form: lp_R / (lp_R + lp_N) of       p_R / (p_R + p_N)
                         log-probabilities, which is inverted
released_utility_weight  short form: utility counts 1.0            0.5, or as set
released_text            short form: answers to open questions     tokens and invented passages
                         keep their tokens; of closed ones 14      go, white space is folded, text
                         tokens and line breaks are deleted and    is stripped
                         nothing more
missing_group_half       a group of which nothing was seen counts  0, and flagged
                         as equal parts: IsRel and IsSup 0.5
desired_token_only       (paper, Eq. 4) only the best token of     graded: partly supported counts
                         each group counts                         half, utility from -1 to 1
share_of_three           (paper, Sec. 3.3) the share of the token   of Retrieval and No Retrieval
                         Retrieval is of all three Retrieve tokens (appendix; also released)
end_token_counts         the token that ended a text counts in the the tokens of the text count
                         mean of the sequence score
minus_100_relevance      long form: a missing IsRel token has the  0, and flagged
                         "probability" -100
zero_utility             long form: IsUse is read at the wrong     IsUse counts
                         ids and counts 0
fixed_weights            long form: weights are 1, 1, 0.5 and the  weights and switch as set
                         sequence score is not used, whatever is
                         set
sibling_leak             a child but the first remembers its       context and text of the parent
                         sibling's text in the place of its
                         parent's
whole_continuation       the whole continuation is generated and   the segment up to the next
                         scored, then cut at ``[Retrieval]``       Retrieve token
deepest_level            only paths of the greatest depth compete  finished ones stay in the pool
depth_counts_root        max_depth 7 allows 6 segments             7
released_search          after the first segment nothing is        decided anew for each segment
                         decided: one that ended in
                         ``[Retrieval]`` goes on with all
                         passages, any other is finished
released_remap           after the first segment the ratio is      continue if that is the
                         (p_R + p_C) / (p_R + p_N); in a whole     likeliest, otherwise p_R / (p_R
                         continuation it rewrites each             + p_N)
                         ``[No Retrieval]``
released_ranking         every candidate is a segment, also an     those that say the same are
                         empty one, and the score alone ranks      merged, and one that says nothing
                                                                   ends its hypothesis
released_citations       a citation bears the number of its        its place in the list of what
                         segment, the last character is taken for  is cited; nothing judged
                         a full stop, every passage is cited, and  irrelevant or unsupported is
                         so is one whose segment has no words;     cited; white space is folded
                         line breaks stay
released_biography       the texts of the segments are joined by   repeats are left out, and each
                         a space, with nothing left out or cited;  segment cites its passage; white
                         line breaks stay                          space is folded
cut_at_blank_line        an answer without retrieval ends at its   it stays whole
                         first blank line
released_draft           long form, adaptive: retrieves only if    by the ratio alone
                         ``[Retrieval]`` also stands in a draft of
                         25 tokens, before its first blank line

Not by name, since they are settings of their own: products of scores (`accumulation`), the same
passages for every segment (`segment_retrieval`), unsupported segments left out at the end
(`ignore_no_support`). Not available: crashes.
"""

from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from crag.reflection_tokens import NO_SUPPORT, RELEVANCE, SUPPORT, UTILITY

Form = Literal["short", "long", "poster"]
Mode = Literal["adaptive", "always", "never", "hard"]
Accumulation = Literal["sum", "mean", "product"]
Compat = Literal[
    "released_ratio",
    "released_utility_weight",
    "released_text",
    "missing_group_half",
    "desired_token_only",
    "share_of_three",
    "end_token_counts",
    "minus_100_relevance",
    "zero_utility",
    "fixed_weights",
    "sibling_leak",
    "whole_continuation",
    "deepest_level",
    "depth_counts_root",
    "released_search",
    "released_remap",
    "released_ranking",
    "released_citations",
    "released_biography",
    "cut_at_blank_line",
    "released_draft",
]
RELEASED_SHORT: frozenset[Compat] = frozenset(
    {
        "released_ratio",
        "released_utility_weight",
        "released_text",
        "missing_group_half",
        "end_token_counts",
    }
)
"""What the released short form does."""
RELEASED_LONG: frozenset[Compat] = frozenset(get_args(Compat)) - {
    "released_ratio",
    "released_utility_weight",
    "released_text",
    "missing_group_half",
    "end_token_counts",
    "desired_token_only",
    "share_of_three",
    "released_biography",
}
"""What the released long form does for ASQA; it goes with accumulation "product". For Biography
`released_biography` takes the place of `released_citations`."""


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
        unknown = tokens - {*RELEVANCE, *SUPPORT, *UTILITY}
        if unknown:
            message = f"no critique tokens: {', '.join(sorted(unknown))}"
            raise ValueError(message)
        return tokens
