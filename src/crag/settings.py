"""The settings of a run: numbers and switches with their bounds.

`Settings` is the graphs' `context_schema`: Studio shows it as a form, the server validates it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from crag.errors import SettingsError, did_you_mean
from crag.plain import first_problem
from crag.wording import plainly_asked

Mode = Literal["adaptive", "always", "never", "hard"]
FindBy = Literal["both", "meaning", "words"]
"""How an index finds documents for a question: by words and by meaning, or by one of them."""
_UNSET = {"", "none", "null"}


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RetrievalSettings(_Group):
    """How documents are found."""

    k: int = Field(default=10, ge=1, le=1000)
    """Documents to retrieve and grade."""
    find_by: FindBy = "both"
    """How the index finds documents: by words and by meaning (both), or by one of them. Other
    retrievers ignore it."""
    folder: str | None = None
    """Search only files of this folder: an absolute path, or a part of one, such as api/v2."""
    respell: bool = True
    """Correct typing errors in an English question by the words of the documents that it finds, and
    find documents again."""
    contextualize: bool = True
    """Rewrite a follow-up question in a chat so that it is self-contained, with one model call."""
    max_question_characters: int = Field(default=8000, ge=1, le=1_000_000)
    """Longest question, in characters; a longer one is rejected."""


class CorrectionSettings(_Group):
    """How documents are graded and refined."""

    upper: float | None = Field(default=None, ge=-100, le=100)
    """Upper threshold: a document scoring at least this makes the action Correct. Empty: the
    evaluator's own."""
    lower: float | None = Field(default=None, ge=-100, le=100)
    """Lower threshold: when every document scores below it the action is Incorrect. Empty: the
    evaluator's own."""
    strip_threshold: float | None = Field(default=-0.5, ge=-100, le=100)
    """Strips of documents that are scored alone, and strips from the web, are dropped below this.
    Empty: no threshold, as in the official code."""
    strips_kept: int | None = Field(default=None, ge=1, le=1000)
    """The most strips kept from the documents, and the most kept from the web. Empty: 5 (the
    paper's), or 8 from documents if strips are scored in context."""


class WebSettings(_Group):
    """How the web is searched and read."""

    web_results: int = Field(default=5, ge=1, le=50)
    """Search hits to use."""
    wikipedia: Literal["prefer", "off"] = "prefer"
    """Hits from Wikipedia: prefer them (the paper), or treat them like any other."""
    confirm_web: bool = False
    """Ask a human before each web search to approve it, edit the query, or refuse. Needs a
    checkpointer."""
    max_pages: int = Field(default=5, ge=0, le=50)
    """Most pages to read for one question. 0: use the snippets of the search."""
    max_web_seconds: float = Field(default=20.0, gt=0, le=600)
    """Most seconds for searching and reading together."""
    obey_robots: bool = True
    """Skip pages that a site's robots.txt forbids."""


class AnswerSettings(_Group):
    """How the answer is written."""

    require_citations: bool = True
    """Replace a model's answer that no strip supports by quotations, or abstain. Off: show such an
    answer, with an event."""
    allow_own_knowledge: bool = False
    """Let the model answer from its own knowledge when no other knowledge is left. Off: abstain."""
    max_answer_tokens: int | None = Field(default=None, ge=1, le=100_000)
    """Longest answer, in tokens of the chat model. Empty: the model's own limit."""


class ReflectionSettings(_Group):
    """How Self-RAG decides, searches and scores (Self-RAG, Sec. 3.3 and Appendix A.3)."""

    form: Literal["short", "long", "poster"] = "short"
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


class Variant(_Group):
    """What the papers vary, and the product does not: the defaults are what it does.

    Nodes read it as `settings.variant`. `crag.papers.settings` makes settings of it.
    """

    refine: bool = True
    """Decompose, filter and recompose the documents. Off: use them whole."""
    titles: Literal["every_strip", "passage", "none"] = "every_strip"
    """Where a document's title is added for scoring: before each strip, once before the passage
    that is decomposed (official for three tasks), or nowhere (official for PopQA)."""
    rewrite: bool = True
    """Rewrite the question into search keywords. Off: the question is the query."""
    select: bool = True
    """Filter web text with the evaluator. Off: use all of it."""
    self_crag_knowledge: Literal["routed", "assembled", "distributed"] = "routed"
    """Self-CRAG: the knowledge that reflection reads: the text of the action (routed); the texts of
    all three, which searches the web for every question (assembled: the paper's table); or these
    with each piece from the web as its own passage (distributed)."""


@dataclass(frozen=True, kw_only=True)
class TaskProfile:
    """How questions are asked and answered: what a task of the papers changes besides numbers.

    Nodes and reflection read it as `settings.profile`; the product has one, `crag.papers.tasks`
    has others.
    """

    cites: bool = True
    """Whether answers refer to strips by number; knowledge without numbers has the papers' form."""
    benchmark: bool = False
    """Whether each message is a question, also thanks and the like, and strips are scored each
    alone, as in the papers, also by an evaluator that reads."""
    closed: bool = False
    """Whether the answer is one of a few labels."""
    answer_prompt: str = "answer_default"
    correct_prompt: str = "answer_correct"
    """Asked in its place where the action is Correct, if attribution finds the citations that it
    does not ask for; it leaves no way to decline. Empty: none."""
    own_prompt: str = "answer_own_knowledge"
    """Asked where there is no knowledge; it states the task as `answer_prompt` does."""
    rewrite_prompt: str = "rewrite_turns"
    knowledge: Callable[[Mapping[str, Any]], str] | None = None
    """Writes the knowledge of a state for the prompts; None: as numbered passages."""
    query: Callable[[str], str] | None = None
    """Makes the web query of a question instead of a model; None: `rewrite_prompt` asks one."""

    def split_apart(self, asked: str) -> tuple[str, dict[str, str]]:
        """Return what is retrieved for and judged, and options, which only the generator sees.

        Courtesies are split off: see `crag.wording`. Options are by their labels as they were
        written; only tasks of the papers have any.
        """
        return plainly_asked(asked), {}

    def instruction_for(self, question: str, options: Mapping[str, str] | None = None) -> str:
        """Return the instruction field of Self-RAG's prompt for a question."""
        del options
        return question

    def values(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return what fills the other placeholders of its prompts."""
        del options
        return {}


_OURS, DEFAULT = Variant(), TaskProfile()


def _grouped(schema: dict[str, Any]) -> None:
    """Name the group of each property in the settings' JSON schema, by which forms arrange them."""
    groups = Settings.__bases__
    for name, field in schema["properties"].items():
        field["description"] = " ".join(field["description"].split())
        for group in groups:
            if name in getattr(group, "model_fields", ()):
                field["group"] = group.__name__.removesuffix("Settings")


class Settings(
    ReflectionSettings, AnswerSettings, WebSettings, CorrectionSettings, RetrievalSettings
):
    """Settings of one run; as text, "none" unsets an optional one.

    Raises:
        SettingsError: a value is invalid, wherever it comes from: the context of a run, a client of
            a server. The message names the field, the value and what is wrong with it.
    """

    model_config = ConfigDict(json_schema_extra=_grouped)

    @property
    def variant(self) -> Variant:
        """What the papers vary."""
        return _OURS

    @property
    def profile(self) -> TaskProfile:
        """How questions are asked and answered."""
        return DEFAULT

    @property
    def cites(self) -> bool:
        """Whether answers cite strips; the prompts of CRAG's tasks ask for no citations."""
        return self.profile.cites

    @field_validator("*", mode="before")
    @classmethod
    def _unset(cls, value: object, info: ValidationInfo) -> object:
        is_unset = isinstance(value, str) and value.strip().lower() in _UNSET
        field = cls.model_fields[info.field_name or ""]
        return None if is_unset and "none" not in get_args(field.annotation) else value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            limits = {"upper": self.upper, "lower": self.lower}
            raise SettingsError("upper, lower", limits, "lower must not be above upper")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Name what is wrong for users; it comes last, so it wraps the others."""
        try:
            return validate(given)
        except ValidationError as error:
            field, value, problem = first_problem(error)
            if field not in cls.model_fields and isinstance(given, Mapping):
                problem = f"unknown name; {did_you_mean(field, cls.model_fields)}"
            raise SettingsError(field or "settings", value, problem) from None
