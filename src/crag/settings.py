"""The settings of a run: numbers and switches with their bounds.

`Settings` is the graphs' `context_schema`: Studio shows it as a form, the server validates it.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, Self, TypeVar, get_args

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
from crag.finding import FindBy
from crag.plain import allowed_by
from crag.reflection_settings import ReflectionSettings
from crag.state import Action
from crag.tasks import DEFAULT, TaskProfile

FILTERS = ("folder", "kind", "since", "until")
"""Settings that say which chunks of the index are searched."""
Decomposition = Literal["sentences", "selection", "excerption", "fixed_num", "fixed_num_spaced"]
_UNSET = {"", "none", "null"}
_FROZEN = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RetrievalSettings(BaseModel):
    """How documents are found."""

    model_config = _FROZEN

    k: int = Field(default=10, ge=1, le=1000)
    """Documents to retrieve and grade."""
    rerank_from: int = Field(default=30, ge=1, le=1000)
    """Documents to retrieve for a reranker, which keeps the best k. Without one it is ignored."""
    find_by: FindBy = "both"
    """How the index finds documents: by words and by meaning (both), or by one of them. Other
    retrievers ignore it."""
    folder: str | None = None
    """Search only files of this folder: an absolute path, or a part of one, such as api/v2."""
    kind: Literal["prose", "list", "table", "code"] | None = None
    """Search only chunks of this kind."""
    since: date | None = None
    """Search only files modified on this day or later, such as 2026-01-31."""
    until: date | None = None
    """Search only files modified on this day or earlier."""
    respell: bool = True
    """Correct typing errors in an English question by the words of the documents that it finds, and
    find documents again."""
    contextualize: bool = True
    """Rewrite a follow-up question in a chat so that it is self-contained, with one model call."""
    max_question_characters: int = Field(default=8000, ge=1, le=1_000_000)
    """Longest question, in characters; a longer one is rejected."""


class CorrectionSettings(BaseModel):
    """How documents are graded and refined."""

    model_config = _FROZEN

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


class WebSettings(BaseModel):
    """How the web is searched and read."""

    model_config = _FROZEN

    web_results: int = Field(default=5, ge=1, le=50)
    """Search hits to use."""
    wikipedia: Literal["prefer", "only", "off"] = "prefer"
    """Hits from Wikipedia: prefer them (the paper), use only them, or treat them like any other."""
    confirm_web: bool = False
    """Ask a human before each web search to approve it, edit the query, or refuse. Needs a
    checkpointer."""
    max_searches: int = Field(default=8, ge=0, le=8)
    """Most web searches for one question. 0: none."""
    max_pages: int = Field(default=5, ge=0, le=50)
    """Most pages to read for one question. 0: use the snippets of the search."""
    max_web_seconds: float = Field(default=20.0, gt=0, le=600)
    """Most seconds for searching and reading together."""
    max_web_bytes: int = Field(default=10_000_000, ge=1000, le=1_000_000_000)
    """Most bytes of all pages together, after decompression."""
    obey_robots: bool = True
    """Skip pages that a site's robots.txt forbids."""


class AnswerSettings(BaseModel):
    """How the answer is written."""

    model_config = _FROZEN

    doubt: bool = False
    """Ask the model more cautiously where no kept strip is well above the lower threshold, so that
    it rather says that there is no answer. Over documentation, a model of 1.5 billion weights then
    made up 2 answers instead of 5, and gave 54 right ones instead of 62. Off: it is asked so
    nowhere, as in the paper."""
    quote_threshold: float | None = Field(default=None, ge=-100, le=100)
    """The score from which on a quotation is a sure answer; below it, it is likely to answer.
    Empty: the evaluator's own."""
    require_citations: bool = True
    """Replace a model's answer that no strip supports by quotations, or abstain. Off: show such an
    answer, with an event."""
    allow_own_knowledge: bool = False
    """Let the model answer from its own knowledge when no other knowledge is left. Off: abstain."""
    max_answer_tokens: int | None = Field(default=None, ge=1, le=100_000)
    """Longest answer, in tokens of the chat model. Empty: the model's own limit."""
    max_llm_calls: int = Field(default=8, ge=0, le=1000)
    """Most chat model calls for one question; the last one is reserved for the answer. Reflection
    has its own budgets."""


class Variant(BaseModel):
    """What the papers vary, and the product does not: the defaults are what it does.

    Nodes read it as `settings.variant`. `VariedSettings` makes settings of it.
    """

    model_config = _FROZEN

    without: Literal["nothing", Action] = "nothing"
    """Ablation: remove one action. Questions of a removed Correct or Incorrect get Ambiguous
    knowledge; without Ambiguous a single threshold decides."""
    single_threshold: float | None = Field(default=None, ge=-100, le=100)
    """The threshold used without Ambiguous. Empty: the midpoint of upper and lower."""
    only: Action | None = None
    """Ablation: give every question this action."""
    refine: bool = True
    """Decompose, filter and recompose the documents. Off: use them whole."""
    decomposition: Decomposition = "sentences"
    """How documents are cut into strips: units of up to three sentences, or one of the official
    modes: whole passages (selection), excerption, windows of 50 words (fixed_num), or windows that
    count the spaces around a passage as words, as the official reader does
    (fixed_num_spaced)."""
    strip_scores: Literal["in_context", "alone"] = "in_context"
    """How strips are scored: by the evaluator's reading of their whole document, if it reads; or
    each alone, as in the paper. An evaluator that does not read scores them alone."""
    strip_order: Literal["original", "score"] = "original"
    """Order of the kept strips: as in the documents (paper), or best first (official code)."""
    titles: Literal["every_strip", "passage", "none"] = "every_strip"
    """Where a document's title is added for scoring: before each strip, once before the passage
    that is decomposed (official for three tasks), or nowhere (official for PopQA)."""
    rewrite: bool = True
    """Rewrite the question into search keywords. Off: the question is the query."""
    read_pages: bool = True
    """Read the pages that were found. Off: use their snippets."""
    select: bool = True
    """Filter web text with the evaluator. Off: use all of it."""
    self_crag_knowledge: Literal["routed", "assembled", "distributed"] = "routed"
    """Self-CRAG: the knowledge that reflection reads: only the text of the action (routed); the
    Correct, Incorrect and Ambiguous texts, which searches the web for every question (assembled:
    the paper's table); or the same with each piece from the web as its own passage
    (distributed)."""
    ambiguous_text: Literal["strips", "joint"] = "strips"
    """Self-CRAG: the text of Ambiguous knowledge: its strips, or the paper's joint text, which
    numbers the knowledge from documents and from the web."""
    knowledge_title: Literal["best_strip", "first_document"] = "best_strip"
    """Self-CRAG: the title of knowledge that combines several texts: the title of its best strip,
    or always the title of the first document (official)."""


_OURS = Variant()


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
    """Settings of one run.

    Raises:
        SettingsError: a value is invalid, wherever it comes from: the context of a run, a client of
            a server. The message names the field, the value and what is allowed.
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

    def calls_left(self, state: Mapping[str, Any]) -> int:
        """Return how many calls of the chat model the run of this state may still make."""
        return self.max_llm_calls - int(state.get("usage", {}).get("llm_calls", 0))

    @model_validator(mode="after")
    def _order_thresholds(self) -> Self:
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            message = f"lower ({self.lower}) must not be above upper ({self.upper})"
            raise ValueError(message)
        return self

    @field_validator("until")
    @classmethod
    def _order_days(cls, until: date | None, others: ValidationInfo) -> date | None:
        since = others.data.get("since")
        if since is not None and until is not None and since > until:
            message = f"it must not be before since ({since})"
            raise ValueError(message)
        return until

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Say what is wrong in words for users; it comes last, so it wraps the others."""
        try:
            return validate(given)
        except ValidationError as error:
            raise _problem(error, given, cls) from None


class VariedSettings(Variant, Settings):
    """Settings with what the papers vary."""

    @property
    def variant(self) -> Variant:
        """What the papers vary: fields of these settings."""
        return self


Form = TypeVar("Form", bound=Settings)


def _problem(error: ValidationError, given: object, form: type[Settings]) -> SettingsError:
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    allowed = allowed_by(first)
    if first["type"] == "extra_forbidden":
        allowed = f"unknown name; {did_you_mean(field, form.model_fields)}"
    value = first["input"]
    if isinstance(given, Mapping):
        value = given.get(field, value) if first["loc"] else dict(given)
    whole = "upper, lower" if isinstance(given, Mapping) else "settings"
    return SettingsError(field if first["loc"] else whole, value, allowed)


def settings_from(values: Mapping[str, object]) -> Settings:
    """Validate `values`; values may be text from a command line.

    Raises:
        SettingsError: a value is invalid; the message names the field, the value and what is
            allowed.
    """
    return Settings.model_validate(dict(values))


def settings_from_text(values: Mapping[str, object], form: type[Form]) -> Form:
    """Validate values from a command line or a file; "none" unsets an optional setting.

    For a setting that has a choice of that name, "none" and None are that choice.

    Raises:
        SettingsError: as `settings_from`.
    """
    return form.model_validate({name: _unset(form, name, value) for name, value in values.items()})


def _unset(form: type[Settings], name: str, value: object) -> object:
    if value is not None and str(value).strip().lower() not in _UNSET:
        return value
    field = form.model_fields.get(name)
    choices = get_args(field.annotation) if field is not None else ()
    return "none" if "none" in choices else None if type(None) in choices else value
