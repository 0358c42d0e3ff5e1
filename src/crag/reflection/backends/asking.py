"""Have a chat model fill in forms: one call each, several of them at the same time."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel

from crag.answering.model_calls import Reply, aask, ask
from crag.errors import ModelError, SettingsError
from crag.events import event
from crag.parts import ChatModel
from crag.reflection.backends.forms import filled
from crag.reflection.backends.log_probabilities import Token, tokens_of
from crag.reflection.spending import spend

logger = logging.getLogger(__name__)


class Call(NamedTuple):
    """What is asked, and the form that the reply fills in."""

    form: type[BaseModel]
    messages: list[AnyMessage]


class Said(NamedTuple):
    """A reply to a call."""

    reply: Reply
    form: BaseModel | None
    """None where there is nothing to use: the call failed, was refused, or the form is not filled
    in."""
    tokens: list[Token]
    """Of the reply, where the server tells their log-probabilities."""


class FormAsker:
    """Ask a chat model for forms, as structured output where it has that, else as JSON.

    At most `concurrency` calls of one batch run at a time. Each is reported to
    `crag.reflection.spending`. None shows up among the tokens that a graph streams.

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
        self._each = RunnableLambda(self.ask, afunc=self.aask)

    def ask(self, call: Call) -> Said:
        """Ask for one form; no failure of the model raises."""
        seen: list[BaseMessage] = []
        return _said(call, ask(self._model(call, seen), call.messages), seen)

    async def aask(self, call: Call) -> Said:
        """Do as `ask` without blocking the event loop."""
        seen: list[BaseMessage] = []
        return _said(call, await aask(self._model(call, seen), call.messages), seen)

    def ask_all(self, calls: Sequence[Call]) -> list[Said]:
        """Ask for several forms at the same time; the order stays.

        Raises:
            ModelError: there is nothing to use in any reply; it tells why for the first one.
        """
        return self._usable(self._each.batch(list(calls), self._config))

    async def aask_all(self, calls: Sequence[Call]) -> list[Said]:
        """Do as `ask_all` without blocking the event loop."""
        return self._usable(await self._each.abatch(list(calls), self._config))

    def failure(self, said: Said) -> ModelError:
        """Return the error that says why a reply cannot be used, without any secret."""
        detail = said.reply.detail or f"the reply does not fill in the form: {said.reply.text!r}"
        described = event("model_failed", "reflect", detail)["detail"]
        return ModelError(self._name, said.reply.problem or "failed", described)

    def _usable(self, said: list[Said]) -> list[Said]:
        failed = [one for one in said if one.form is None]
        if failed and len(failed) == len(said):
            raise self.failure(failed[0])
        for one in failed:
            logger.warning("a reply cannot be used: %s", self.failure(one))
        return said

    def _model(self, call: Call, seen: list[BaseMessage]) -> Runnable[Any, Any]:
        return self._models[call.form] | RunnableLambda(partial(_message, seen))


def _asking(model: ChatModel, form: type[BaseModel], *, structured: bool) -> Runnable[Any, Any]:
    asked: Runnable[Any, Any] = model
    if structured and isinstance(model, BaseChatModel):
        try:
            asked = model.with_structured_output(form, include_raw=True)
        except NotImplementedError:
            logger.debug("%s has no structured output", type(model).__name__)
    return asked.with_config(tags=[TAG_NOSTREAM])


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


def _said(call: Call, reply: Reply, seen: Sequence[BaseMessage]) -> Said:
    spend(reply.usage)
    form = filled(call.form, reply.text) if reply.problem is None else None
    return Said(reply, form, tokens_of(seen[0] if seen else None))
