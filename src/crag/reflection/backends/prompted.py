"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.constants import TAG_NOSTREAM
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model

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


def _graded(utility: int) -> int:
    # Bounds are checked apart: not every provider takes them in a schema.
    if not 1 <= utility <= len(UTILITY):
        raise ValueError(f"the grade must be from 1 to {len(UTILITY)}")
    return utility


_Plain = BeforeValidator(
    lambda label: label.strip(" []").casefold() if isinstance(label, str) else label
)
_Grade = Annotated[int, AfterValidator(_graded)]
_FIELDS: Mapping[str, tuple[Any, str]] = {
    "retrieval": (Literal["yes", "no"], "Whether looking something up would help"),
    "next_retrieval": (Literal["yes", "no", "continue"], "What the next sentence needs"),
    "relevance": (Literal["relevant", "irrelevant"], "Whether the passage helps to answer"),
    "text": (str, "The text asked for, without marks or citations"),
    "support": (
        Literal["fully", "partially", "none"], "How far the passage bears out what the text states",
    ),
    "utility": (_Grade, "A whole number from 1 (hardly on the subject) to 5 (complete)"),
    "next": (
        Literal["retrieve", "continue", "no_retrieve", "end"], "What comes after this text",
    ),
}  # fmt: skip
_TOKENS: Mapping[str, Mapping[str, str]] = {
    "retrieval": {"yes": RETRIEVAL, "no": NO_RETRIEVAL, "continue": CONTINUE},
    "relevance": {"relevant": RELEVANT, "irrelevant": IRRELEVANT},
    "support": {"fully": FULLY, "partially": PARTIALLY, "none": NO_SUPPORT},
    "utility": {str(grade): token for grade, token in enumerate(UTILITY, start=1)},
}


def _form(name: str, *fields: str) -> type[BaseModel]:
    """Return a form; its fields come in the order in which Self-RAG's tokens do."""
    declared: dict[str, Any] = {}
    for field in fields:
        kind, description = _FIELDS[field]
        label = kind if kind in {str, _Grade} else Annotated[kind, _Plain]
        declared[field.removeprefix("next_")] = (label, Field(description=description))
    return create_model(name, **declared)


FORMS: Mapping[str, type[BaseModel]] = {
    "reflect_retrieve": _form("Retrieval", "retrieval"),
    "reflect_next": _form("NextRetrieval", "next_retrieval"),
    "reflect_answer_alone": _form("Answer", "text", "utility"),
    "reflect_segment_alone": _form("Segment", "text", "utility", "next"),
    "reflect_answer": _form("JudgedAnswer", "relevance", "text", "support", "utility"),
    "reflect_segment": _form("JudgedSegment", "relevance", "text", "support", "utility", "next"),
}
"""What is to be filled in, by the prompt that asks for it."""


class Call(NamedTuple):
    """The prompt, and the form that the reply fills in."""

    form: type[BaseModel]
    messages: list[AnyMessage]


class Said(NamedTuple):
    """A reply to a call."""

    reply: Reply
    form: Any
    """None if the reply cannot be used: a failure, a refusal, or a form that is not filled in."""
    tokens: list[Token]
    """Of the reply, if the server sends their log-probabilities."""


class PromptedReflection:
    """Ask a chat model for text and critiques together, in one call for each continuation.

    The critiques are those of Self-RAG's critic. Each is a field of JSON in the reply, to which
    servers of OpenAI's protocol are held by a schema unless `structured` is off (for those that
    refuse one). Probabilities are those that the server
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
        forms = FORMS.values()
        self._asker = FormAsker(model, forms, concurrency=concurrency, structured=structured)

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Ask whether to retrieve; at the beginning of an answer "continue" is not offered.

        Raises:
            ModelError: a call failed, or its reply is malformed.
        """
        asked = [
            ("reflect_next" if one.answered else "reflect_retrieve", one, one.passage)
            for one in prefixes
        ]
        decisions: list[Decision] = []
        for said in self._said(asked):
            if said.form is None:
                raise self._asker.failure(said)
            shares = _probabilities(said, "retrieval")
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
        kind = "reflect_answer" if limits.whole_answer else "reflect_segment"
        asked = [
            (kind if passage else f"{kind}_alone", prefix, passage)
            for prefix, passage in continuations
        ]
        return [
            _candidate(said, limits, has_passage=continuation.passage is not None)
            for said, continuation in zip(self._said(asked), continuations, strict=True)
        ]

    def _said(self, asked: Sequence[tuple[str, Prefix, Passage | None]]) -> list[Said]:
        """Return the reply to each form, named by its prompt; equal ones are asked for once."""
        keys = [
            (name, neutral(prefix.instruction), _material(prefix, passage))
            for name, prefix, passage in asked
        ]
        distinct = list(dict.fromkeys(keys))
        calls = [
            Call(FORMS[name], self._prompts.render(name, question=question, knowledge=material))
            for name, question, material in distinct
        ]
        replies = dict(zip(distinct, self._asker.ask_all(calls), strict=True))
        return [replies[key] for key in keys]


def _material(prefix: Prefix, passage: Passage | None) -> str:
    """Fence what was written so far and the passage; neither can close its tags."""
    said = cleaned(prefix.answered).replace("<", "‹")
    parts = [f"<written>\n{said}\n</written>"] if said else []
    if passage is not None:
        text = neutral(f"{passage.title}\n{passage.text[:LONGEST_PASSAGE]}").strip()
        parts.append(f"<passage>\n{text}\n</passage>")
    return "\n\n".join(parts)


def _candidate(said: Said, limits: SegmentLimits, *, has_passage: bool) -> Candidate:
    form = said.form
    if form is None:
        return nothing({} if has_passage else None)
    text, is_cut = shortened(prose(form.text), limits)
    ending: Ending = "length" if is_cut else getattr(form, "next", "end")
    relevance = _probabilities(said, "relevance") if has_passage else None
    is_judged = has_passage and text and form.relevance == "relevant"
    support = _probabilities(said, "support") if is_judged else None
    utility = _probabilities(said, "utility") if ending == "end" else None
    sent = of_text(said.tokens) if text else None
    mean, tokens = sent or (NO_LOG_PROBABILITY, len(text.split()))
    whole = written(text, relevance=relevance, support=support, utility=utility)
    return Candidate(whole, relevance, support, utility, mean, tokens, ending)


def _probabilities(said: Said, field: str) -> Probabilities:
    """Return the probabilities that the server sent for a field, or else 1 for its label."""
    names, label = _TOKENS[field], str(getattr(said.form, field))
    sent = of_labels(said.tokens, field, names)
    if sent and names[label] in sent:
        return sent
    return {token: float(token == names[label]) for token in names.values()}


class FormAsker:
    """Ask a chat model for forms as JSON.

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
        model = self._models[form.form] | RunnableLambda(partial(_noted, seen))
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
    """Return what replies with JSON: by the prompt, or by a schema where the protocol is OpenAI's.

    Only JSON in the reply itself has log-probabilities, and a tool call is none.
    """
    is_openai = any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__)
    if structured and is_openai:
        schema = {"name": form.__name__, "schema": form.model_json_schema()}
        model = model.bind(response_format={"type": "json_schema", "json_schema": schema})
    return model.with_config(tags=[TAG_NOSTREAM])


def _noted(seen: list[BaseMessage], result: Any) -> Any:
    """Keep the message, which a classified reply no longer has."""
    seen += [result] if isinstance(result, BaseMessage) else []
    return result
