"""Settings of Self-RAG for one run."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Form = Literal["short", "long", "poster"]
Mode = Literal["adaptive", "always", "never", "hard"]


class CritiqueWeights(NamedTuple):
    """What each part counts in a score (Self-RAG, Sec. 3.3 and Appendix A.3)."""

    relevance: float = 1.0
    support: float = 1.0
    utility: float = 0.5
    sequence: float = 1.0
    """Exp of the mean log-probability."""


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
    segment_retrieval: Literal["static", "dynamic"] = "static"
    """Self-RAG, long form: the same passages for every segment, or a search for each. Self-CRAG
    prepares its knowledge once, whichever is set."""

    weight_relevance: float = Field(default=1.0, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsRel counts in a score."""
    weight_support: float = Field(default=1.0, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsSup counts in a score."""
    weight_utility: float = Field(default=0.5, ge=0, le=100, allow_inf_nan=False)
    """Self-RAG: what IsUse counts in a score."""
    constraints: Literal["soft", "hard"] = "soft"
    """Self-RAG: weigh critiques only, or drop candidates that the model calls unsupported."""

    beam_width: int = Field(default=2, ge=1, le=64)
    """Self-RAG, long form: hypotheses kept after each segment."""
    max_depth: int = Field(default=6, ge=1, le=64)
    """Self-RAG, long form: the most segments of an answer."""
    max_new_tokens: int = Field(default=100, ge=1, le=100_000)
    """Self-RAG: the longest segment; in short form the longest answer."""
    max_reflection_seconds: float = Field(default=300.0, gt=0, le=86_400)
    """Self-RAG, long form and poster: nothing more is generated later than this."""

    @property
    def weights(self) -> CritiqueWeights:
        """What each part of a score counts."""
        return CritiqueWeights(self.weight_relevance, self.weight_support, self.weight_utility)
