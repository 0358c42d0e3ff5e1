"""Rewrite the question into a query for a web search."""

import re

from langchain_core.messages import AnyMessage

from crag.events import Event, event
from crag.parts import ChatModel
from crag.prompts import render
from crag.replies import Reply, aask, ask
from crag.settings import Settings
from crag.state import RewriteUpdate, State, Usage

_PROMPTS = {"pubhealth": "rewrite_pubhealth", "arc": "rewrite_arc"}
_WHO_IS = re.compile(r"^who is (.+?)\??$", re.IGNORECASE)
_FALLBACK = "search for the question itself"
_LONGEST_QUERY = 400
"""Characters; search services refuse longer ones."""


class Rewrite:
    """Extract search keywords with one model call (CRAG, Sec. 4.5), or use the question itself.

    The question in the state stays as it is: it is what strips are scored against and what is
    answered. Where nothing can be searched (`searches` is false) no call is spent on a query.
    """

    def __init__(self, model: ChatModel | None, *, searches: bool = True) -> None:
        self._model = model
        self._searches = searches

    def run(self, state: State, settings: Settings) -> RewriteUpdate:
        """Rewrite in the calling thread."""
        planned = self._without_call(state, settings)
        if planned is not None or self._model is None:
            return planned or _as_it_is(state)
        return _update(state, ask(self._model, _prompt(state, settings)))

    async def arun(self, state: State, settings: Settings) -> RewriteUpdate:
        """Rewrite without blocking the event loop."""
        planned = self._without_call(state, settings)
        if planned is not None or self._model is None:
            return planned or _as_it_is(state)
        return _update(state, await aask(self._model, _prompt(state, settings)))

    def _without_call(self, state: State, settings: Settings) -> RewriteUpdate | None:
        """Return the update when no model is to be asked, None when one is."""
        if not (settings.rewrite and self._searches):
            return _as_it_is(state)
        if settings.task == "biography":  # Its questions hold nothing but the name (official code).
            name = _WHO_IS.sub(r"\1", state["question"])
            return RewriteUpdate(query=name, events=[], usage=Usage())
        if self._model is None:
            detail = "no chat model is configured to rewrite the question"
            return _as_it_is(state, event("rewrite_skipped", "rewrite", detail, _FALLBACK))
        spent = state.get("usage", {}).get("llm_calls", 0)
        if spent + 2 > settings.max_llm_calls:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
            return _as_it_is(state, event("budget_exhausted", "rewrite", detail, _FALLBACK))
        return None


def _prompt(state: State, settings: Settings) -> list[AnyMessage]:
    return render(_PROMPTS.get(settings.task, "rewrite_default"), question=state["question"])


def _update(state: State, reply: Reply) -> RewriteUpdate:
    if reply.problem is not None:
        failed = event("rewrite_failed", "rewrite", reply.detail, _FALLBACK)
        return _as_it_is(state, failed, usage=reply.usage)
    return RewriteUpdate(query=_query(reply.text), events=[], usage=reply.usage)


def _as_it_is(state: State, *events: Event, usage: Usage | None = None) -> RewriteUpdate:
    query = _query(state["question"])
    return RewriteUpdate(query=query, events=list(events), usage=usage or Usage())


def _query(text: str) -> str:
    return " ".join(text.split()).strip("\"'")[:_LONGEST_QUERY]
