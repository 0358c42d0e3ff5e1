"""Call a chat model, and classify its reply: usable, failed, refused or empty."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage

from crag.errors import ModelProblem
from crag.parts import ChatModel
from crag.plain import said
from crag.reflection_tokens import without_reflection
from crag.runtime.attempt import Attempt
from crag.runtime.replies import message_of, reply_of, usage_of
from crag.runtime.waiting import blocking, call
from crag.state import Usage

_THOUGHTS = re.compile(
    r"\A\s*<think>.*?(?:</think>|\Z)|\A(?:(?!<think>).)*?^[ \t]*</think>[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
"""What a model wrote to itself first, where its server leaves that in the reply. It may be cut off,
and the first mark may stand in the prompt, so that only the last one, on a line of its own, is
left."""
_CUT_BY_FILTER = {"content_filter", "refusal", "safety", "SAFETY"}


class Reply(NamedTuple):
    """The reply of a model, or the reason why there is none to use."""

    text: str
    problem: ModelProblem | None
    detail: object
    """The exception or sentence that explains `problem`."""
    message_id: str | None
    usage: Usage


async def aask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Call the model once without blocking the event loop; no failure of it raises."""
    reply: Reply | None = None
    with Attempt("model") as attempt:
        reply = _as_reply(await call(model.invoke, model.ainvoke, list(messages)))
    return reply or Reply("", "failed", attempt.error, None, Usage(llm_calls=1))


def ask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Do the same for a caller that blocks."""
    return blocking(aask(model, messages))


def _as_reply(returned: object) -> Reply:
    """Read what a model returned; an exception while reading counts as a failure of the call."""
    raw, usage = message_of(returned), usage_of(returned)
    if isinstance(raw, str):
        written, message_id, refusal = raw, None, ""
    else:
        refusal, written = _refusal(raw), str(raw.text)
        message_id = raw.id if isinstance(raw.id, str) else None
    if refusal:
        return Reply("", "refused", refusal, message_id, usage)
    # A model with reflection tokens writes them after any prompt; the official code removes them.
    text = without_reflection(_THOUGHTS.sub("", reply_of(written), count=1)).strip()
    if not text:
        return Reply("", "empty", "the model replied with nothing", message_id, usage)
    return Reply(text, None, "", message_id, usage)


def _refusal(message: BaseMessage) -> str:
    """Return why the provider withheld the reply; providers report it in one of two fields."""
    extras: object = message.additional_kwargs
    if isinstance(extras, Mapping) and (refused := extras.get("refusal")):
        return f"the model refused: {refused}"
    metadata: object = message.response_metadata
    if not isinstance(metadata, Mapping):
        return ""
    finish = said(metadata.get("finish_reason") or metadata.get("stop_reason"))
    return f"the provider withheld the reply ({finish})" if finish in _CUT_BY_FILTER else ""
