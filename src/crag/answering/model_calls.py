"""Call a chat model, and classify its reply: usable, failed, refused or empty."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from crag.errors import ModelProblem
from crag.parts import ChatModel
from crag.plain import said, well_formed
from crag.reflection_tokens import without_reflection
from crag.runtime.calls import Attempt
from crag.state import Usage
from crag.text.language import ENGLISH, language_of
from crag.text.marks import in_our_format, without_marks
from crag.text.sentences import split_sentences
from crag.text.thoughts import without_thoughts

_WITHHELD = re.compile(
    r"filter|refus|safety|guardrail|sensitive|blocklist|prohibited|spii|recitation|toxic"
    r"|inspection|policy",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"stop\w*|end\w*|eos\w*|completed?|finish(?:ed)?|done|normal|succe\w+|ok|tool\w*"
    r"|function\w*|\d+"
)
"""Reasons why a reply has ended where it should; with any other of a provider's it was cut off."""
_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
"""Where providers say why a reply ended."""
_REFUSES_SYSTEM = re.compile(r"\b(?:system|developer|roles?)\b", re.IGNORECASE)
_STREAM = re.compile(r"\bstream", re.IGNORECASE)
_END = re.compile(r"(?:[.!?…。！？}]|```|~~~)[\s\])}*_\"'”’]*\Z")
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

    One that takes no system message is called again with it at the top of the first message of the
    user, and one that cannot stream without that.
    """
    asked, options = [*messages], dict[str, Any]()
    while True:
        with Attempt("model") as attempt:
            return _as_reply(model.invoke(asked, **options))
        if not _changed(attempt.error, asked, options):
            return _failed(attempt.error)


async def aask(model: ChatModel, messages: Sequence[AnyMessage]) -> Reply:
    """Do as `ask` without blocking the event loop."""
    asked, options = [*messages], dict[str, Any]()
    while True:
        with Attempt("model") as attempt:
            return _as_reply(await model.ainvoke(asked, **options))
        if not _changed(attempt.error, asked, options):
            return _failed(attempt.error)


def _changed(error: Exception | None, asked: list[AnyMessage], options: dict[str, Any]) -> bool:
    """Say whether the call was changed to one without what the server has refused by its name."""
    words = said(reason_of(error))
    if len(asked) > 1 and isinstance(asked[0], SystemMessage) and _REFUSES_SYSTEM.search(words):
        asked[:2] = [HumanMessage(f"{asked[0].text}\n\n{asked[1].text}")]
    elif not options and (_STREAM.search(words) or isinstance(error, json.JSONDecodeError)):
        options["stream"] = False
    else:
        return False
    return True


def _failed(error: Exception | None) -> Reply:
    is_withheld = _WITHHELD.search(said(getattr(error, "code", "")))
    problem: ModelProblem = "refused" if is_withheld else "failed"
    return Reply("", problem, reason_of(error), None, Usage(llm_calls=1))


def reason_of(error: Exception | None) -> object:
    """Return an error of a server with what the body of its reply says; any other as it is."""
    response = getattr(error, "response", None)
    status, said_why = getattr(response, "status_code", None), ""
    with suppress(Exception):  # A body that was never read, or is no text.
        said_why = words_of(str(response.text)) if response is not None else ""
    if isinstance(error, json.JSONDecodeError):
        return f"the server's reply is no JSON: {words_of(error.doc) or 'it is empty'}"
    if error is None or not said_why:
        return error
    return f"{type(error).__name__}: the server answered {status}: {said_why}"


def words_of(body: str) -> str:
    """Return the message in a body: that of the JSON object, or the words of a page of HTML."""
    try:
        found = json.loads(body)
    except ValueError:
        return " ".join(_TAG.sub(" ", body).split())
    for key in ("error", "message", "detail"):
        found = found.get(key) or found if isinstance(found, Mapping) else found
    return said(found)


def _as_reply(returned: object) -> Reply:
    """Read what a model returned; an exception while reading counts as a failure of the call."""
    counted = getattr(returned, "usage_metadata", None) or {}
    tokens = {name: counted.get(name) for name in ("input_tokens", "output_tokens")}
    tokens = {name: count for name, count in tokens.items() if isinstance(count, int)}
    usage = cast("Usage", {"llm_calls": 1, **tokens})
    message = returned if isinstance(returned, BaseMessage) else AIMessage(str(returned))
    refused, cut = _ended(message)
    if refused:
        return Reply("", "refused", refused, message.id, usage)
    # A model with reflection tokens writes them after any prompt; the official code removes them.
    text = without_reflection(without_thoughts(well_formed(str(message.text)))).strip()
    text = _finished(text) if cut else text
    nothing = f"the reply was cut off: {cut}" if cut else "the model replied with nothing"
    problem: ModelProblem | None = None if text else "empty"
    return Reply(text, problem, "" if text else nothing, message.id, usage, cut)


def _ended(message: BaseMessage) -> tuple[str, str]:
    """Return why the provider withheld a reply, and why it ends before its end; "" for neither.

    Providers give a reason when it is whole.
    """
    metadata, blocks = message.response_metadata, message.content
    refusals = [one.get("refusal") for one in blocks if isinstance(one, dict)]
    for refusal in (message.additional_kwargs.get("refusal"), *refusals):
        if refusal:
            return f"the model refused: {refusal}", ""
    details = metadata.get("incomplete_details") or {}
    given = [details.get("reason"), *map(metadata.get, _REASONS)]
    reasons = [said(one).rpartition(".")[2] for one in given if one]
    if withheld := next(filter(_WITHHELD.search, reasons), ""):
        return f"the provider withheld the reply ({withheld})", ""
    is_stream = not reasons and "model_provider" in metadata
    unknown = [one for one in reasons if not _WHOLE.fullmatch(one.casefold())]
    return "", "the stream ended without a reason" if is_stream else (*unknown, "")[0]


def _finished(text: str) -> str:
    """Return a text that was cut off without the sentence, item, row or code that has no end."""
    text = text.rpartition("```")[0] if text.count("```") % 2 else text
    pieces = split_sentences(in_our_format(text), language_of(text) or ENGLISH)
    while pieces and not _END.search(without_marks(pieces[-1])) and pieces[-1][-1] != "\n":
        pieces.pop()
    return "".join(pieces).strip()
