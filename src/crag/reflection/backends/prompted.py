"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, BeforeValidator, create_model

from crag.answering.model_calls import Reply, ask, filled
from crag.errors import ModelError
from crag.events import describe
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
from crag.plain import said
from crag.prompts import PACKAGED, Prompts
from crag.reflection.backends.candidates import (
    LONGEST_PASSAGE,
    candidate_of,
    nothing,
    prose,
    shortened,
)
from crag.reflection.cleaning import cleaned
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
from crag.text.marks import in_our_format, without_marks
from crag.text.untrusted import neutral

AT_ONCE = 8
"""Calls of one round that run at a time."""
_REFUSED = re.compile(r"answered (?:400|415|422|500|501)\b|response_format|json_schema")
"""What a server says that takes no schema for its reply."""
_logger = logging.getLogger(__name__)


_TOKENS: Mapping[str, Mapping[str, str]] = {
    "retrieval": {"yes": RETRIEVAL, "no": NO_RETRIEVAL, "continue": CONTINUE},
    "relevance": {"relevant": RELEVANT, "irrelevant": IRRELEVANT},
    "support": {"fully": FULLY, "partially": PARTIALLY, "none": NO_SUPPORT},
    "utility": {str(grade): token for grade, token in enumerate(UTILITY, start=1)},
}
_LABELS: Mapping[str, Iterable[str]] = {
    **_TOKENS, "next": ("retrieve", "continue", "no_retrieve", "end"),
}  # fmt: skip
_PLAIN = BeforeValidator(lambda label: str(label).strip(" []").casefold())


def _form(*fields: str) -> type[BaseModel]:
    """Return a form; its fields come in the order in which Self-RAG's tokens do."""
    kinds: dict[str, Any] = {"text": str}
    for field, labels in _LABELS.items():
        kinds[field] = Annotated[Literal[tuple(labels)], _PLAIN]
    declared: dict[str, Any] = {field: (kinds[field], ...) for field in fields}
    return create_model("".join(map(str.title, fields)), **declared)


FORMS: Mapping[str, type[BaseModel]] = {
    "reflect_retrieve": _form("retrieval"),
    "reflect_next": _form("retrieval"),
    "reflect_answer_alone": _form("text", "utility"),
    "reflect_segment_alone": _form("text", "utility", "next"),
    "reflect_answer": _form("relevance", "text", "support", "utility"),
    "reflect_segment": _form("relevance", "text", "support", "utility", "next"),
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


class PromptedReflection:
    """Ask a chat model for text and critiques together, in one call for each continuation.

    The critiques are those of Self-RAG's critic. Each is a field of JSON in the reply, whose label
    has the probability 1; the mean log-probability is 0.

    A passage judged irrelevant has no IsSup. IsUse is given where a text ends the answer, as a
    model with the tokens does. A text of more words than the segment may have tokens is cut; the
    model itself is not limited, since half a form cannot be read. All calls of a round run at the
    same time, whatever their prefixes.
    """

    approximation = "a chat model without reflection tokens was asked for IsRel, IsSup and IsUse"

    def __init__(self, model: ChatModel, *, prompts: Prompts = PACKAGED) -> None:
        self._asker, self._prompts = FormAsker(model), prompts

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Ask whether to retrieve; at the beginning of an answer "continue" is not offered.

        Raises:
            ModelError: a call failed, or its reply is malformed.
        """
        calls = [
            self._call("reflect_next" if one.answered else "reflect_retrieve", one, one.passage)
            for one in prefixes
        ]
        decisions: list[Decision] = []
        for reply in self._asker.ask_all(calls):
            if reply.form is None:
                raise self._asker.failure(reply)
            emitted = _TOKENS["retrieval"][reply.form.retrieval]
            decisions.append(Decision(_probabilities(reply.form, "retrieval"), emitted))
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
        calls = [
            self._call(kind if passage else f"{kind}_alone", prefix, passage)
            for prefix, passage in continuations
        ]
        return [
            _candidate(reply, limits, has_passage=continuation.passage is not None)
            for reply, continuation in zip(self._asker.ask_all(calls), continuations, strict=True)
        ]

    def _call(self, name: str, prefix: Prefix, passage: Passage | None) -> Call:
        """Fence what was written so far and the passage; neither can close its tags."""
        before = cleaned(prefix.answered).replace("<", "‹")
        parts = [f"<written>\n{before}\n</written>"] if before else []
        if passage is not None:
            text = neutral(f"{passage.title}\n{passage.text[:LONGEST_PASSAGE]}").strip()
            parts.append(f"<passage>\n{text}\n</passage>")
        values = {"question": neutral(prefix.instruction), "knowledge": "\n\n".join(parts)}
        return Call(FORMS[name], self._prompts.render(name, **values))


def _candidate(said: Said, limits: SegmentLimits, *, has_passage: bool) -> Candidate:
    form = said.form
    if form is None:
        return nothing({} if has_passage else None)
    text, is_cut = shortened(prose(without_marks(in_our_format(form.text, {1}))), limits)
    ending: Ending = "length" if is_cut else getattr(form, "next", "end")
    is_judged = has_passage and text and form.relevance == "relevant"
    return candidate_of(
        text,
        relevance=_probabilities(form, "relevance") if has_passage else None,
        support=_probabilities(form, "support") if is_judged else None,
        utility=_probabilities(form, "utility") if ending == "end" else None,
        ending=ending,
        sure=not said.reply.cut,
    )


def _probabilities(form: Any, field: str) -> Probabilities:
    """Return the probability 1 for the label of a field."""
    labels = _TOKENS[field]
    return {token: float(token == labels[getattr(form, field)]) for token in labels.values()}


class FormAsker:
    """Ask a chat model for forms as JSON, a few at a time; their tokens are not streamed.

    A server of OpenAI's protocol is held to a form by its schema. One that refuses it is asked
    again without, and from then on.
    """

    def __init__(self, model: ChatModel, *, concurrency: int = AT_ONCE) -> None:
        self._name = str(getattr(model, "model_name", "") or type(model).__name__)
        self._takes_schema = any(one.__name__ == "BaseChatOpenAI" for one in type(model).__mro__)
        self._further = getattr(model, "extra_body", None) or {}
        self._model = model.with_config(tags=[TAG_NOSTREAM])
        self._config = RunnableConfig(max_concurrency=concurrency)

    def ask(self, call: Call) -> Said:
        """Ask for one form; no failure of the model raises."""
        has_schema = self._takes_schema
        reply = self._reply(call, has_schema=has_schema)
        if has_schema and reply.problem == "failed" and _REFUSED.search(said(reply.detail)):
            reply = self._reply(call, has_schema=False)
            self._takes_schema = reply.problem is not None
        return Said(reply, filled(call.form, reply.text) if reply.problem is None else None)

    def _reply(self, call: Call, *, has_schema: bool) -> Reply:
        model = self._model
        if has_schema:
            schema = {"name": call.form.__name__, "schema": call.form.model_json_schema()}
            form = {"type": "json_schema", "json_schema": schema}
            # Not as `response_format`, by which the client reads and may refuse the reply itself.
            model = model.bind(extra_body={**self._further, "response_format": form})
        reply = ask(model, call.messages)
        spend(reply.usage)
        return reply

    def ask_all(self, calls: Sequence[Call]) -> list[Said]:
        """Ask for several forms at the same time; the order stays.

        Raises:
            ModelError: no reply can be used; the message gives the reason for the first one.
        """
        replies = RunnableLambda(self.ask).batch(list(calls), self._config)
        failed = [reply for reply in replies if reply.form is None]
        if failed and len(failed) == len(replies):
            raise self.failure(failed[0])
        for reply in failed:
            _logger.warning("a reply cannot be used: %s", self.failure(reply))
        return replies

    def failure(self, reply: Said) -> ModelError:
        """Return the error with the reason why a reply cannot be used, without any secret."""
        unread, cut = f"does not fill in the form: {reply.reply.text!r}", reply.reply.cut
        unread = f"was cut off ({cut}), and {unread}" if cut else unread
        detail = reply.reply.detail or f"the reply {unread}"
        return ModelError(self._name, reply.reply.problem or "failed", describe(detail))
