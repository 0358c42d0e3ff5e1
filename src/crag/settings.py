"""What can be changed for each run: numbers and switches, each with its bounds.

This model is the graphs' `context_schema`: Studio shows it as a form, the server validates it.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from crag.errors import SettingsError
from crag.reflection.options import Options
from crag.settings_form import arrange
from crag.state import Action
from crag.tasks import TASKS, Task, TaskProfile

SelfCragKnowledge = Literal["routed", "assembled", "distributed"]
Decomposition = Literal["sentences", "selection", "excerption", "fixed_num"]
_PRESETS = {name: dict(profile.settings) for name, profile in TASKS.items()}


class Correction(BaseModel):
    """How Corrective RAG retrieves, grades, refines, searches and answers: the other part."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    task: Task = Field(default="default", json_schema_extra={"presets": cast("Any", _PRESETS)})
    """Prompts and the papers' numbers for one of their tasks; `default` and `asqa` answer with
    citations. A task's thresholds belong to CRAG's T5 evaluator."""
    k: int = Field(default=10, ge=1, le=1000)
    """Documents to retrieve and grade."""
    contextualize: bool = True
    """Make a question that follows others in a chat self-contained, with one model call."""
    history_messages: int = Field(default=6, ge=1, le=1000)
    """Earlier messages of a chat that are read for it."""
    max_question_characters: int = Field(default=8000, ge=1, le=1_000_000)
    """A longer question is refused."""

    upper: float | None = Field(default=None, ge=-100, le=100)
    """Upper threshold: a document scoring at least this makes the action Correct. Empty: the
    evaluator's own."""
    lower: float | None = Field(default=None, ge=-100, le=100)
    """Lower threshold: when every document scores below it the action is Incorrect. Empty: the
    evaluator's own."""
    without: Literal["nothing", "correct", "incorrect", "ambiguous"] = "nothing"
    """Ablation: remove one action. Questions of a removed Correct or Incorrect get Ambiguous
    knowledge; without Ambiguous a single threshold decides."""
    single_threshold: float | None = Field(default=None, ge=-100, le=100)
    """The threshold used without Ambiguous. Empty: the midpoint of upper and lower."""
    only: Action | None = None
    """Ablation: give every question this action."""

    refine: bool = True
    """Decompose, filter and recompose the documents. Off: they are used whole."""
    decomposition: Decomposition = "sentences"
    """How documents are cut into strips: units of up to three sentences, or one of the official
    modes: whole passages (selection), excerption, windows of 50 words (fixed_num)."""
    strip_threshold: float | None = Field(default=-0.5, ge=-100, le=100)
    """Strips scoring below this are dropped. Empty: no threshold, as in the official code."""
    strips_kept: int = Field(default=5, ge=1, le=1000)
    """The most strips kept from the documents, and the most kept from the web."""
    strip_order: Literal["original", "score"] = "original"
    """Order of the kept strips: as in the documents (the paper), or best first (official code)."""
    titles: Literal["every_strip", "passage", "none"] = "every_strip"
    """Where a document's title takes part in scoring: before each strip, once before the passage
    that is decomposed (official for three tasks), or nowhere (official for PopQA)."""

    rewrite: bool = True
    """Rewrite the question into search keywords. Off: the question is the query."""
    web_results: int = Field(default=5, ge=1, le=50)
    """Search hits to use."""
    wikipedia: Literal["prefer", "only", "off"] = "prefer"
    """Hits from Wikipedia: before the others (the paper), only they, or like any other."""
    confirm_web: bool = False
    """Ask a human before anything is searched for: approve, edit the query, or refuse. Needs a
    checkpointer."""
    read_pages: bool = True
    """Read the pages that were found. Off: their snippets serve."""
    select: bool = True
    """Filter web text by the evaluator. Off: all of it is used."""
    max_searches: int = Field(default=1, ge=0, le=10)
    """Budget of web searches for one question; 0: none."""
    max_pages: int = Field(default=5, ge=0, le=50)
    """Budget of pages to read for one question."""
    max_web_seconds: float = Field(default=20.0, gt=0, le=600)
    """Budget of seconds for searching and reading together."""
    max_web_bytes: int = Field(default=10_000_000, ge=1000, le=1_000_000_000)
    """Budget of bytes of all pages together, after decompression."""
    page_seconds: float = Field(default=8.0, gt=0, le=600)
    """Longest time for one page."""
    page_bytes: int = Field(default=3_000_000, ge=1000, le=1_000_000_000)
    """Largest page, after decompression."""
    obey_robots: bool = True
    """Leave out pages that a site's robots.txt forbids."""
    max_paragraphs: int = Field(default=200, ge=1, le=100_000)
    """Budget of paragraphs of the web that the evaluator judges; of more, those are judged that
    share most words with the question."""
    requests_per_site: int = Field(default=4, ge=1, le=50)
    """Pages read from one site at the same time."""
    cache_hours: float = Field(default=24.0, ge=0, le=8760)
    """Age up to which pages kept on disk serve again. 0: pages are neither kept nor taken from
    there."""

    require_citations: bool = True
    """Replace a model's answer that cites nothing by quotations, or abstain. Off: such an answer is
    shown, with an event. The paper's tasks have answers without citations."""
    allow_own_knowledge: bool = False
    """Let the model answer from what it knows when no knowledge is left. Off: abstain."""
    max_answer_tokens: int | None = Field(default=None, ge=1, le=100_000)
    """Longest answer, in tokens of the chat model. Empty: the model's own limit."""
    max_llm_calls: int = Field(default=8, ge=0, le=1000)
    """Budget of chat model calls for one question; the last one is kept for the answer. What
    reflects has budgets of its own."""

    self_crag_knowledge: SelfCragKnowledge = "routed"
    """Self-CRAG: what reflection is given: only the action's text (routed), the Correct, Incorrect
    and Ambiguous text, which searches the web for every question (assembled: the paper's table), or
    the same with each piece of the web on its own (distributed)."""
    knowledge_title: Literal["best_strip", "first_document"] = "best_strip"
    """Self-CRAG: the title of knowledge that is made of several texts: that of its best strip, or
    that of the first document, whatever the knowledge is (official)."""


class Settings(Options, Correction):
    """Settings of one run; every switch that the papers ablate is one of them."""

    model_config = ConfigDict(json_schema_extra=arrange)

    @property
    def profile(self) -> TaskProfile:
        """Everything that the task changes."""
        return TASKS[self.task]

    @property
    def cites(self) -> bool:
        """Whether answers refer to strips by number."""
        return self.profile.cites

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        preset = next((TASKS[task].settings for task in TASKS if task == given.get("task")), {})
        return {**preset, **given}

    @model_validator(mode="after")
    def _order_thresholds(self) -> Self:
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            message = f"lower ({self.lower}) must not be above upper ({self.upper})"
            raise ValueError(message)
        return self


def settings_from(values: Mapping[str, object]) -> Settings:
    """Validate `values`, also those given as text on a command line.

    Raises:
        SettingsError: it names the field, the value and the allowed range or names.
    """
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            allowed = f"unknown name; known are {', '.join(Settings.model_fields)}"
        else:
            allowed = first["msg"].removeprefix("Value error, ")
        value = values.get(field, first["input"]) if field else dict(values)
        raise SettingsError(field or "upper, lower", value, allowed) from None
