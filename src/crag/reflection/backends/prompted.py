"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.constants import TAG_NOSTREAM
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from crag.answering.model_calls import Reply, ask
from crag.errors import ModelError, SettingsError
from crag.events import event
from crag.parts import (
    Candidate,
    ChatModel,
    Continuation,
    Decision,
    Passage,
    Prefix,
    Probabilities,
    SegmentLimits,
)
from crag.plain import filled
from crag.prompts import PACKAGED, Prompts
from crag.reflection.backends.candidates import (
    NO_LOG_PROBABILITY,
    Token,
    nothing,
    of_labels,
    of_text,
    prose,
    shortened,
    tokens_of,
    written,
)
from crag.reflection.cleaning import cleaned
from crag.reflection.scoring import argmax
from crag.reflection.spending import spend
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.state import Ending
from crag.text.untrusted import neutral

LONGEST_PASSAGE = 8000
"""Characters of a passage that the model is shown; the rest is cut off."""
DEFAULT_CONCURRENCY = 8
_logger = logging.getLogger(__name__)
_WORST, _BEST = 1, 5


def _plain(label: object) -> object:
    return label.strip(" []").casefold() if isinstance(label, str) else label


def _graded(utility: int) -> int:
    # Bounds are checked apart: not every provider takes them in a schema.
    if not _WORST <= utility <= _BEST:
        message = f"the grade must be from {_WORST} to {_BEST}"
        raise ValueError(message)
    return utility


_Plain = BeforeValidator(_plain)
_First = Annotated[Literal["yes", "no"], _Plain]
_Later = Annotated[Literal["yes", "no", "continue"], _Plain]
_Relevance = Annotated[Literal["relevant", "irrelevant"], _Plain]
_Support = Annotated[Literal["fully", "partially", "none"], _Plain]
_Utility = Annotated[int, AfterValidator(_graded)]
_Next = Annotated[Literal["retrieve", "continue", "no_retrieve", "end"], _Plain]
_RELEVANCE_FIELD = "Whether the passage helps to answer"
_TEXT_FIELD = "The text asked for, without marks or citations"
_SUPPORT_FIELD = "How far the passage bears out what the text states"
_UTILITY_FIELD = "A whole number from 1 (hardly on the subject) to 5 (complete)"
_NEXT_FIELD = "What comes after this text"


class Retrieval(BaseModel):
    """Whether to look something up."""

    retrieval: _First = Field(description="Whether looking something up would help")


class NextRetrieval(BaseModel):
    """Whether to look something up for the next sentence."""

    retrieval: _Later = Field(description="What the next sentence needs")


class Answer(BaseModel):
    """An answer without a passage."""

    text: str = Field(description=_TEXT_FIELD)
    utility: _Utility = Field(description=_UTILITY_FIELD)


class Segment(Answer):
    """A sentence without a passage."""

    next: _Next = Field(description=_NEXT_FIELD)


class JudgedAnswer(BaseModel):
    """An answer from a passage, judged."""

    relevance: _Relevance = Field(description=_RELEVANCE_FIELD)
    text: str = Field(description=_TEXT_FIELD)
    support: _Support = Field(description=_SUPPORT_FIELD)
    utility: _Utility = Field(description=_UTILITY_FIELD)


class JudgedSegment(JudgedAnswer):
    """A sentence from a passage, judged."""

    next: _Next = Field(description=_NEXT_FIELD)


_PROMPTS: Mapping[type[BaseModel], str] = {
    Retrieval: "reflect_retrieve",
    NextRetrieval: "reflect_next",
    Answer: "reflect_answer_alone",
    Segment: "reflect_segment_alone",
    JudgedAnswer: "reflect_answer",
    JudgedSegment: "reflect_segment",
}
_RETRIEVE = {"yes": RETRIEVAL, "no": NO_RETRIEVAL, "continue": CONTINUE}
_RELEVANCE = {"relevant": RELEVANT, "irrelevant": IRRELEVANT}
_SUPPORT = {"fully": FULLY, "partially": PARTIALLY, "none": NO_SUPPORT}
_UTILITY = {str(grade): token for grade, token in enumerate(UTILITY, start=1)}


class Call(NamedTuple):
    """The prompt, and the form that the reply fills in."""

    form: type[BaseModel]
    messages: list[AnyMessage]


class Said(NamedTuple):
    """A reply to a call."""

    reply: Reply
    form: BaseModel | None
    """None if the reply cannot be used: a failure, a refusal, or a form that is not filled in."""
    tokens: list[Token]
    """Of the reply, if the server sends their log-probabilities."""


class PromptedReflection:
    """Ask a chat model for text and critiques together, in one call for each continuation.

    The critiques are those of Self-RAG's critic. Each is a field of structured output where the
    model is a LangChain chat model that has it, and of JSON in the reply otherwise, or if
    `structured` is off (for servers that refuse a schema). Probabilities are those that the server
    sends for its tokens (``ChatOpenAI(logprobs=True, top_logprobs=5)``), and without them 1 and 0;
    the mean log-probability is then 0.

    A passage judged irrelevant has no IsSup. IsUse is given where a text ends the answer, as a
    model with the tokens does. A text of more words than the segment may have tokens is cut; the
    model itself is not limited, since half a form cannot be read.

    At most `concurrency` calls of one round run at a time, whatever their prefixes, and equal ones
    are made once; `crag.reflection.spending` counts each.

    Raises:
        SettingsError: `concurrency` is below 1.
    """

    approximation = "a chat model without reflection tokens was asked for IsRel, IsSup and IsUse"

    def __init__(
        self,
        model: ChatModel,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        structured: bool = True,
        prompts: Prompts = PACKAGED,
    ) -> None:
        self._prompts = prompts
        self._asker = FormAsker(model, _PROMPTS, concurrency=concurrency, structured=structured)

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Ask whether to retrieve; at the beginning of an answer "continue" is not offered.

        Raises:
            ModelError: a call failed, or its reply is malformed.
        """
        forms = [
            _form(NextRetrieval if prefix.answered else Retrieval, prefix, prefix.passage)
            for prefix in prefixes
        ]
        decisions: list[Decision] = []
        for said in self._said(forms):
            if not isinstance(said.form, Retrieval | NextRetrieval):
                raise self._asker.failure(said)
            shares = _probabilities(said, "retrieval", _RETRIEVE, said.form.retrieval)
            decisions.append(Decision(shares, argmax("retrieve", shares)))
        return decisions

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Ask for all continuations at the same time.

        A call that failed, was refused or gave a malformed reply makes an empty candidate without
        critiques.

        Raises:
            ModelError: this happened to every call.
        """
        forms: list[_Form] = []
        for prefix, passage in continuations:
            kinds = (Answer, Segment) if passage is None else (JudgedAnswer, JudgedSegment)
            forms.append(_form(kinds[not limits.whole_answer], prefix, passage))
        return [
            _candidate(said, continuation.passage, limits)
            for said, continuation in zip(self._said(forms), continuations, strict=True)
        ]

    def _said(self, forms: "Sequence[_Form]") -> list[Said]:
        distinct = list(dict.fromkeys(forms))
        said = self._asker.ask_all([form.call(self._prompts) for form in distinct])
        return [said[distinct.index(form)] for form in forms]


class _Form(NamedTuple):
    """A form to be filled in, and what the prompt for it says."""

    kind: type[BaseModel]
    question: str
    knowledge: str

    def call(self, prompts: Prompts) -> Call:
        values = {"question": self.question, "knowledge": self.knowledge}
        return Call(self.kind, prompts.render(_PROMPTS[self.kind], **values))


def _form(kind: type[BaseModel], prefix: Prefix, passage: Passage | None) -> _Form:
    return _Form(kind, neutral(prefix.instruction), _material(prefix, passage))


def _material(prefix: Prefix, passage: Passage | None) -> str:
    """Fence what was written so far and the passage; neither can close its tags."""
    said = cleaned(prefix.answered).replace("<", "‹")
    parts = [f"<written>\n{said}\n</written>"] if said else []
    if passage is not None:
        text = neutral(f"{passage.title}\n{passage.text[:LONGEST_PASSAGE]}").strip()
        parts.append(f"<passage>\n{text}\n</passage>")
    return "\n\n".join(parts)


def _candidate(said: Said, passage: Passage | None, limits: SegmentLimits) -> Candidate:
    form = said.form
    if not isinstance(form, Answer | JudgedAnswer):
        return nothing(None if passage is None else {})
    text, is_cut = shortened(prose(form.text), limits)
    ending: Ending = "length" if is_cut else getattr(form, "next", "end")
    relevance = support = utility = None
    if ending == "end":
        utility = _probabilities(said, "utility", _UTILITY, str(form.utility))
    if isinstance(form, JudgedAnswer):
        relevance = _probabilities(said, "relevance", _RELEVANCE, form.relevance)
        if text and form.relevance == "relevant":
            support = _probabilities(said, "support", _SUPPORT, form.support)
    sent = of_text(said.tokens) if text else None
    mean, tokens = sent or (NO_LOG_PROBABILITY, len(text.split()))
    whole = written(text, relevance=relevance, support=support, utility=utility)
    return Candidate(whole, relevance, support, utility, mean, tokens, ending)


def _probabilities(said: Said, field: str, names: Mapping[str, str], label: str) -> Probabilities:
    """Return the probabilities that the server sent for a field, or else 1 for its label."""
    sent = of_labels(said.tokens, field, names)
    if sent and names[label] in sent:
        return sent
    return {token: float(token == names[label]) for token in names.values()}


class FormAsker:
    """Ask a chat model for forms, as structured output where it has that, else as JSON.

    At most `concurrency` calls of one batch run at a time. Each is reported to
    `crag.reflection.spending`. None of their tokens are streamed by a graph.

    Raises:
        SettingsError: `concurrency` is below 1.
    """

    def __init__(
        self,
        model: ChatModel,
        forms: Iterable[type[BaseModel]],
        *,
        concurrency: int,
        structured: bool,
    ) -> None:
        if concurrency < 1:
            raise SettingsError("concurrency", concurrency, "at least 1")
        self._name = str(getattr(model, "model_name", "") or type(model).__name__)
        self._models = {form: _asking(model, form, structured=structured) for form in forms}
        self._config = RunnableConfig(max_concurrency=concurrency)
        self._each = RunnableLambda(self.ask)

    def ask(self, form: Call) -> Said:
        """Ask for one form; no failure of the model raises."""
        seen: list[BaseMessage] = []
        model = self._models[form.form] | RunnableLambda(partial(_message, seen))
        reply = ask(model, form.messages)
        spend(reply.usage)
        filled_in = filled(form.form, reply.text) if reply.problem is None else None
        return Said(reply, filled_in, tokens_of(seen[0] if seen else None))

    def ask_all(self, calls: Sequence[Call]) -> list[Said]:
        """Ask for several forms at the same time; the order stays.

        Raises:
            ModelError: no reply can be used; the message gives the reason for the first one.
        """
        said = self._each.batch(list(calls), self._config)
        failed = [reply for reply in said if reply.form is None]
        if failed and len(failed) == len(said):
            raise self.failure(failed[0])
        for reply in failed:
            _logger.warning("a reply cannot be used: %s", self.failure(reply))
        return said

    def failure(self, said: Said) -> ModelError:
        """Return the error with the reason why a reply cannot be used, without any secret."""
        detail = said.reply.detail or f"the reply does not fill in the form: {said.reply.text!r}"
        described = event("model_failed", "reflect", detail)["detail"]
        return ModelError(self._name, said.reply.problem or "failed", described)


def _asking(model: ChatModel, form: type[BaseModel], *, structured: bool) -> Runnable[Any, Any]:
    runnable: Runnable[Any, Any] = model
    if structured and isinstance(model, BaseChatModel):
        # Only JSON in the reply itself has log-probabilities; clients of OpenAI's protocol may
        # prefer tools.
        is_openai = any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__)
        options = {"method": "json_schema"} if is_openai else {}
        try:
            runnable = model.with_structured_output(form, include_raw=True, **options)
        except NotImplementedError:
            _logger.debug("%s has no structured output", type(model).__name__)
    return runnable.with_config(tags=[TAG_NOSTREAM])


def _message(seen: list[BaseMessage], result: Any) -> Any:
    """Make a message of structured output, so that every reply is read in the same way."""
    parsed = None
    if isinstance(result, dict) and "raw" in result:
        result, parsed = result["raw"], result["parsed"]
    if not isinstance(result, BaseMessage):
        return result
    seen.append(result)
    if isinstance(parsed, BaseModel):  # A tool call has no text.
        return result.model_copy(update={"content": parsed.model_dump_json()})
    return result
