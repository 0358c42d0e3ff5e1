"""Ask a chat model, and tell a usable reply from a failure, a refusal and silence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage

from crag.errors import ModelProblem
from crag.parts import ChatModel
from crag.reflection_tokens import without_reflection
from crag.runtime.attempt import Attempt
from crag.state import Usage

_CUT_BY_FILTER = {"content_filter", "refusal", "safety", "SAFETY"}


class Reply(NamedTuple):
    """What a model said, or why there is nothing to use."""

    text: str
    problem: ModelProblem | None
    detail: object
    """The exception or sentence that explains `problem`."""
    message_id: str | None
    usage: Usage


def ask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Call the model once; no failure of it raises."""
    raw: Any = None
    with Attempt("model") as attempt:
        raw = model.invoke(list(messages))
    return _read(raw, attempt)


async def aask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Call the model once without blocking the event loop; no failure of it raises."""
    raw: Any = None
    with Attempt("model") as attempt:
        raw = await model.ainvoke(list(messages))
    return _read(raw, attempt)


def _read(raw: Any, attempt: Attempt) -> Reply:
    usage = _usage(raw)
    if attempt.error is not None:
        return Reply("", "failed", attempt.error, None, usage)
    message_id = raw.id if isinstance(raw, BaseMessage) else None
    refusal = _refusal(raw)
    if refusal:
        return Reply("", "refused", refusal, message_id, usage)
    said = str(raw.text if isinstance(raw, BaseMessage) else raw or "")
    # A model with reflection tokens writes them after any prompt; the official code removes them.
    text = without_reflection(said).strip()
    if not text:
        return Reply("", "empty", "the model replied with nothing", message_id, usage)
    return Reply(str(text), None, "", message_id, usage)


def _refusal(raw: Any) -> str:
    """Return why the provider withheld the reply, in the two ways providers say so."""
    if not isinstance(raw, BaseMessage):
        return ""
    said = raw.additional_kwargs.get("refusal")
    if said:
        return f"the model refused: {said}"
    metadata = raw.response_metadata
    finish = metadata.get("finish_reason") or metadata.get("stop_reason")
    return f"the provider withheld the reply ({finish})" if finish in _CUT_BY_FILTER else ""


def _usage(raw: Any) -> Usage:
    counted = getattr(raw, "usage_metadata", None) or {}
    usage = Usage(llm_calls=1)
    if counted:
        usage["input_tokens"] = int(counted.get("input_tokens", 0))
        usage["output_tokens"] = int(counted.get("output_tokens", 0))
    return usage
