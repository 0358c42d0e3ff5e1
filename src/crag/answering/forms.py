"""Have a chat model fill in a form: JSON, held to a schema where the model's server can do that."""

import ast
import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel

from crag.answering.model_calls import Reply, ask
from crag.errors import ModelError
from crag.events import describe
from crag.parts import ChatModel
from crag.plain import said
from crag.state import add_usage
from crag.text.thoughts import without_thoughts

AT_ONCE = 8
"""Calls that run at a time."""
_REFUSED = re.compile(r"answered (?:4(?!01|08|29)\d\d|50[01])\b|response_format|json_schema")
"""What a server says that takes no schema for its reply."""
_OPENING = re.compile(r"[\[{](?=\s*[\w\"'“{\[/#])")
_DECODER = json.JSONDecoder(strict=False)
_LONGEST, _MOST = 20_000, 100
"""Characters of an object that is no JSON, and brackets of a reply; the rest is not read."""
_AMENDED = [
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, instead in (
        (r"[“”„]", '"'),
        (r"(?<=[\s,\[{])(?://|#)[^\"\n]*$", ""),
        (r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":'),
        (r",(\s*[}\]])", r"\1"),
    )
]
"""What models write that is no JSON, and what they mean."""
_logger = logging.getLogger(__name__)


class Call(NamedTuple):
    """The form, and the prompt that asks for it."""

    form: type[BaseModel]
    messages: list[AnyMessage]


class Said(NamedTuple):
    """A reply to a call."""

    reply: Reply
    form: Any
    """None if the reply cannot be used: a failure, a refusal, or a form that is not filled in."""


class FormAsker:
    """Ask a chat model for forms as JSON; their tokens are not streamed.

    A server of OpenAI's protocol is held to a form by its schema. One that refuses or ignores it is
    asked once more without, and if that helps, from then on.
    """

    def __init__(self, model: ChatModel) -> None:
        self._name = str(getattr(model, "model_name", "") or type(model).__name__)
        self._takes_schema = any(one.__name__ == "BaseChatOpenAI" for one in type(model).__mro__)
        self._further = getattr(model, "extra_body", None) or {}
        self._model = model.with_config(tags=[TAG_NOSTREAM])

    def ask(self, call: Call) -> Said:
        """Ask for one form; no failure of the model raises."""
        if not self._takes_schema:
            return self._asked(call, self._model)
        schema = {"name": call.form.__name__, "schema": call.form.model_json_schema()}
        form = {"type": "json_schema", "json_schema": schema}
        # Not as `response_format`, by which the client reads and may refuse the reply itself.
        held = self._model.bind(extra_body={**self._further, "response_format": form})
        first = self._asked(call, held)
        is_ignored = first.reply.problem is None and not first.reply.cut
        is_refused = first.reply.problem == "failed" and _REFUSED.search(said(first.reply.detail))
        if first.form is not None or not (is_ignored or is_refused):
            return first
        again = self._asked(call, self._model)
        self._takes_schema = again.form is None
        spent = add_usage(first.reply.usage, again.reply.usage)
        return again._replace(reply=again.reply._replace(usage=spent))

    def _asked(self, call: Call, model: ChatModel) -> Said:
        reply = ask(model, call.messages)
        return Said(reply, filled(call.form, reply.text) if reply.problem is None else None)

    def ask_all(self, calls: Sequence[Call], at_once: int = AT_ONCE) -> list[Said]:
        """Ask for several forms at the same time; the order stays."""
        config = RunnableConfig(max_concurrency=at_once)
        replies = RunnableLambda(self.ask).batch(list(calls), config)
        for reply in replies:
            if reply.form is None:
                _logger.warning("a reply cannot be used: %s", self.failure(reply))
        return replies

    def failure(self, unusable: Said) -> ModelError:
        """Return the error with the reason why a reply cannot be used, without any secret."""
        reply = unusable.reply
        cut = f"was cut off ({reply.cut}), and " if reply.cut else ""
        detail = reply.detail or f"the reply {cut}does not fill in the form: {reply.text!r}"
        return ModelError(self._name, reply.problem or "failed", describe(detail))


def filled(form: type[BaseModel], reply: str) -> Any:
    """Read the last object of a model's reply that fills in the form; None if there is none.

    It is JSON, or what models write for it: with single quotes, keys without any, comments, or a
    comma too many. Thoughts, fences and prose around it are ignored, and so is an object that the
    model repeats from what it read before it gives its own. A form of one list may be that list.
    """
    text, found, end = without_thoughts(reply), None, 0
    for begun in islice(_OPENING.finditer(text), _MOST):
        if begun.start() < end:  # It is a part of the last one.
            continue
        with suppress(ValueError, TypeError, SyntaxError, RecursionError):
            value, after = _read(text, begun.start())
            (only, *others), is_list = form.model_fields, isinstance(value, list)
            named = {only: value} if is_list and not others else dict(value)
            found = form.model_validate({str(name).casefold(): named[name] for name in named})
            end = after
    return found


def _read(text: str, at: int) -> tuple[Any, int]:
    """Return the object or list that begins at a place, and where it ends."""
    with suppress(ValueError):
        return _DECODER.raw_decode(text, at)
    end = text.rfind("}" if text[at] == "{" else "]") + 1
    written = text[at : min(end, at + _LONGEST)] if end > at else f"{text[at : at + _LONGEST]}}}"
    for pattern, instead in _AMENDED:
        written = pattern.sub(instead, written)
    with suppress(ValueError):
        return _DECODER.decode(written), len(text)
    return ast.literal_eval(written), len(text)
