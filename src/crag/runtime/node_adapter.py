"""Run a node in LangGraph with the settings of the run; add what parts noted and tokens cost."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.runtime import get_runtime

from crag.events import Event, noting
from crag.settings import Settings

State = Any
Update = Any


class Node(Protocol):
    """A node that computes; LangGraph runs it in a thread if the caller is async."""

    def run(self, state: State, settings: Settings) -> Update:
        """Return the update of the state."""
        ...


class AsyncNode(Node, Protocol):
    """A node that waits for something external, and can do so without blocking a thread."""

    async def arun(self, state: State, settings: Settings) -> Update:
        """Return the same update as `run`."""
        ...


def computing(node: Node) -> Runnable[State, Update]:
    """Turn a node that computes into a LangGraph node."""
    return RunnableLambda(_sync(node), name=type(node).__name__)


def waiting(node: AsyncNode) -> Runnable[State, Update]:
    """Turn a node that waits into a LangGraph node."""
    return RunnableLambda(_sync(node), afunc=_async(node), name=type(node).__name__)


def current_settings() -> Settings:
    """Return the settings of the run, or the defaults if the caller passed none.

    LangGraph validates a mapping against the schema before the run starts. In a user's graph whose
    context is of another type, the defaults apply.
    """
    context = get_runtime().context
    return context if isinstance(context, Settings) else Settings()


def _sync(node: Node) -> Callable[[State], Update]:
    def called(state: State) -> Update:
        settings = current_settings()
        with noting(_name(node)) as noted:
            update = node.run(state, settings)
        return _priced(_told(update, noted), settings)

    return called


def _async(node: AsyncNode) -> Callable[[State], Awaitable[Update]]:
    async def called(state: State) -> Update:
        settings = current_settings()
        with noting(_name(node)) as noted:
            update = await node.arun(state, settings)
        return _priced(_told(update, noted), settings)

    return called


def _name(node: Node) -> str:
    """Return the name of a node's file, which events name it by."""
    return re.sub(r"(?<=.)(?=[A-Z])", "_", type(node).__name__).lower()


def _told(update: Update, noted: list[Event]) -> Update:
    """Add to the events of an update what parts noted."""
    if not noted:
        return update
    events = update.get("events", [])
    # The same kind of list: that of a new question replaces what was recorded before.
    return {**update, "events": type(events)([*noted, *events])}


def _priced(update: Update, settings: Settings) -> Update:
    """Add to the usage of an update what its tokens cost, where there are prices."""
    usage = update.get("usage")
    cost = settings.cost_of(usage) if usage else 0
    # The same kind of mapping: that of a new question replaces what was counted before.
    return {**update, "usage": type(usage)({**usage, "cost": cost})} if cost else update
