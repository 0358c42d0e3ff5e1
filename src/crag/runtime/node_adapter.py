"""Run a node in LangGraph with the settings of the run, and add what its tokens cost."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.runtime import get_runtime

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
    return RunnableLambda(_sync(node.run), name=type(node).__name__)


def waiting(node: AsyncNode) -> Runnable[State, Update]:
    """Turn a node that waits into a LangGraph node."""
    return RunnableLambda(_sync(node.run), afunc=_async(node.arun), name=type(node).__name__)


def current_settings() -> Settings:
    """Return the settings of the run, or the defaults if the caller passed none.

    LangGraph validates a mapping against the schema before the run starts. In a user's graph whose
    context is of another type, the defaults apply.
    """
    context = get_runtime().context
    return context if isinstance(context, Settings) else Settings()


def _sync(run: Callable[[State, Settings], Update]) -> Callable[[State], Update]:
    def node(state: State) -> Update:
        settings = current_settings()
        return _priced(run(state, settings), settings)

    return node


def _async(
    arun: Callable[[State, Settings], Awaitable[Update]],
) -> Callable[[State], Awaitable[Update]]:
    async def node(state: State) -> Update:
        settings = current_settings()
        return _priced(await arun(state, settings), settings)

    return node


def _priced(update: Update, settings: Settings) -> Update:
    """Add to the usage of an update what its tokens cost, where there are prices."""
    usage = update.get("usage")
    cost = settings.cost_of(usage) if usage else 0
    # The same kind of mapping: that of a new question replaces what was counted before.
    return {**update, "usage": type(usage)({**usage, "cost": cost})} if cost else update
