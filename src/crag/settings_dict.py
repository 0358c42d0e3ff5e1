"""The settings as a dictionary, for type checkers: `make docs` writes it."""

from collections.abc import Collection
from datetime import date
from typing import Literal

from typing_extensions import TypedDict


class SettingsDict(TypedDict, total=False):
    """Settings by name, as `Settings` takes them: what they mean and allow stands there."""

    task: Literal["default", "popqa", "pubhealth", "arc", "biography", "asqa"]
    k: int
    rerank_from: int
    find_by: Literal["both", "meaning", "words"]
    folder: str | None
    kind: Literal["prose", "list", "table", "code"] | None
    since: date | str | None
    until: date | str | None
    respell: bool
    contextualize: bool
    history_messages: int
    max_question_characters: int
    upper: float | None
    lower: float | None
    without: Literal["nothing", "correct", "ambiguous", "incorrect"]
    single_threshold: float | None
    only: Literal["correct", "ambiguous", "incorrect"] | None
    refine: bool
    decomposition: Literal["sentences", "selection", "excerption", "fixed_num", "fixed_num_spaced"]
    strip_scores: Literal["in_context", "alone"]
    strip_threshold: float | None
    strips_kept: int | None
    strip_order: Literal["original", "score"]
    titles: Literal["every_strip", "passage", "none"]
    rewrite: bool
    web_results: int
    wikipedia: Literal["prefer", "only", "off"]
    confirm_web: bool
    read_pages: bool
    select: bool
    max_searches: int
    max_pages: int
    max_web_seconds: float
    max_web_bytes: int
    page_seconds: float
    page_bytes: int
    obey_robots: bool
    max_paragraphs: int
    requests_per_site: int
    doubt: bool
    quote_threshold: float | None
    require_citations: bool
    allow_own_knowledge: bool
    max_answer_tokens: int | None
    max_llm_calls: int
    input_price: float | None
    output_price: float | None
    self_crag_knowledge: Literal["routed", "assembled", "distributed"]
    ambiguous_text: Literal["strips", "joint"]
    knowledge_title: Literal["best_strip", "first_document"]
    form: Literal["short", "long", "poster"]
    retrieval_mode: Literal["adaptive", "always", "never", "hard"]
    delta: float
    poster_fallback: Literal["abstain", "best_effort"]
    segment_retrieval: Literal["static", "dynamic"]
    skip_used_passages: bool
    weight_relevance: float
    weight_support: float
    weight_utility: float
    sequence_score: bool
    accumulation: Literal["sum", "mean", "product"]
    constraints: Literal["soft", "hard"]
    undesired: Collection[str]
    ignore_no_support: bool
    beam_width: int
    max_depth: int
    max_segment_tokens: int
    max_reflection_tokens: int
    max_reflection_seconds: float
    compat: Collection[str]
