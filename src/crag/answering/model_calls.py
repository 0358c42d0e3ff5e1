"""Call a chat model, and classify its reply: usable, failed, refused or empty."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage

from crag.errors import ModelProblem
from crag.parts import ChatModel
from crag.plain import said, well_formed
from crag.reflection_tokens import without_reflection
from crag.runtime.attempt import Attempt
from crag.state import Usage
from crag.text.language import ENGLISH, language_of
from crag.text.marks import without_marks
from crag.text.sentences import split_sentences
from crag.text.thoughts import without_thoughts

_WITHHELD = {"content_filter", "refusal", "safety"}
_CUT = {
    "length", "max_tokens", "max_output_tokens", "model_length", "incomplete", "error", "aborted",
    "model_context_window_exceeded", "insufficient_system_resource",
}  # fmt: skip
"""Reasons of providers why a reply ends before its end, in lower case."""
_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
"""Where providers say why a reply ended."""
_REFUSES_SYSTEM = re.compile(
    r"system\W*(?:role|message|prompt)|role\W*system|roles must", re.IGNORECASE
)
_END = re.compile(r"(?:[.!?…。！？]|```|~~~)[\s\])}*_\"'”’]*\Z")
_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


class Reply(NamedTuple):
    """The reply of a model, or the reason why there is none to use."""

    text: str
    problem: ModelProblem | None
    detail: object
    """The exception or sentence that explains `problem`."""
    message_id: str | None
    usage: Usage
    cut: str = ""
    """Why the reply ends before its end, if it does; its unfinished sentence is left out."""


def ask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Call the model once; no failure of it raises.

    One that takes no system message gets it at the top of the first message of the user, with a
    second call.
    """
    reply: Reply | None = None
    with Attempt("model") as attempt:
        reply = _as_reply(model.invoke(list(messages)))
    if attempt.error is not None and _refuses_system(attempt.error, messages):
        with Attempt("model") as attempt:
            reply = _as_reply(model.invoke(_in_one(messages)))
    return reply or _failed(attempt.error)


async def aask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Do as `ask` without blocking the event loop."""
    reply: Reply | None = None
    with Attempt("model") as attempt:
        reply = _as_reply(await model.ainvoke(list(messages)))
    if attempt.error is not None and _refuses_system(attempt.error, messages):
        with Attempt("model") as attempt:
            reply = _as_reply(await model.ainvoke(_in_one(messages)))
    return reply or _failed(attempt.error)


def _failed(error: Exception | None) -> Reply:
    return Reply("", "failed", reason_of(error), None, Usage(llm_calls=1))


def reason_of(error: Exception | None) -> object:
    """Return an error of a server with what the body of its reply says; any other as it is."""
    response = getattr(error, "response", None)
    status, said_why = getattr(response, "status_code", None), ""
    with suppress(Exception):  # A body that was never read, or is no text.
        said_why = _words_of(str(response.text)) if response is not None else ""
    if error is None or not said_why:
        return error
    return f"{type(error).__name__}: the server answered {status}: {said_why}"


def _words_of(body: str) -> str:
    """Return the message in a body: that of the JSON object, or the words of a page of HTML."""
    try:
        found = json.loads(body)
    except ValueError:
        return " ".join(_TAG.sub(" ", body).split())
    for key in ("error", "message", "detail"):
        found = found.get(key) or found if isinstance(found, Mapping) else found
    return said(found)


def _refuses_system(error: Exception, messages: Sequence[AnyMessage]) -> bool:
    has_one = isinstance(messages[0], SystemMessage) if len(messages) > 1 else False
    return has_one and bool(_REFUSES_SYSTEM.search(said(reason_of(error))))


def _in_one(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Write the system message at the top of the message after it."""
    system, first, *others = messages
    return [HumanMessage(f"{system.text}\n\n{first.text}"), *others]


def _as_reply(returned: object) -> Reply:
    """Read what a model returned; an exception while reading counts as a failure of the call."""
    counted = getattr(returned, "usage_metadata", None) or {}
    tokens = {name: counted[name] for name in ("input_tokens", "output_tokens") if name in counted}
    usage = cast("Usage", {"llm_calls": 1, **tokens})
    if not isinstance(returned, BaseMessage):
        written, message_id, refused, cut = str(returned), None, "", ""
    else:
        written, message_id = str(returned.text), returned.id
        refused, cut = _ended(returned)
    if refused:
        return Reply("", "refused", refused, message_id, usage)
    # A model with reflection tokens writes them after any prompt; the official code removes them.
    text = without_reflection(without_thoughts(well_formed(written))).strip()
    if cut:
        text = _finished(text)
    if not text:
        detail = f"the reply was cut off: {cut}" if cut else "the model replied with nothing"
        return Reply("", "empty", detail, message_id, usage, cut)
    return Reply(text, None, "", message_id, usage, cut)


def _ended(message: BaseMessage) -> tuple[str, str]:
    """Return why the provider withheld a reply, and why it ends before its end; "" for neither.

    Providers give a reason when it is whole.
    """
    metadata = message.response_metadata
    if refused := message.additional_kwargs.get("refusal"):
        return f"the model refused: {refused}", ""
    reasons = [said(metadata[key]) for key in _REASONS if metadata.get(key)]
    for reason in reasons:
        if reason.casefold() in _WITHHELD:
            return f"the provider withheld the reply ({reason})", ""
        if reason.casefold() in _CUT:
            return "", reason
    is_stream = not reasons and "model_provider" in metadata
    return "", "the stream ended without a reason" if is_stream else ""


def _finished(text: str) -> str:
    """Return a text that was cut off without the sentence, or the code, that has no end."""
    pieces = split_sentences(text, language_of(text) or ENGLISH)
    while pieces and not _END.search(without_marks("".join(pieces))):
        pieces.pop()
    return "".join(pieces).strip()
