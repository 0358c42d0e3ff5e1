"""Run a node in LangGraph with the settings of the run; add what parts noted and tokens cost."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command

from crag.events import Event, noting
from crag.runtime.waiting import blocking, compute
from crag.settings import Settings, settings_from

State = Any
Update = Any
_DEFAULTS: Final = Settings()


class Node(Protocol):
    """A node that computes; LangGraph runs it in a thread if the caller is async."""

    def run(self, state: State, settings: Settings) -> Update:
        """Return the update of the state."""
        ...


class WaitingNode(Protocol):
    """A node that waits for something external; `crag.runtime.waiting` says by which calls."""

    async def run(self, state: State, settings: Settings) -> Update:
        """Return the update of the state."""
        ...


def computing(node: Node) -> Runnable[State, Update]:
    """Turn a node that computes into a LangGraph node."""
    return _adapted(type(node).__name__, lambda state, settings: compute(node.run, state, settings))


def waiting(node: WaitingNode) -> Runnable[State, Update]:
    """Turn a node that waits into a LangGraph node, which blocks neither a loop nor needs one."""
    return _adapted(type(node).__name__, node.run)


def _adapted(
    name: str, run: Callable[[State, Settings], Awaitable[Update]]
) -> Runnable[State, Update]:
    file = re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower()  # Events name a node by its file.

    async def awaited(state: State) -> Update:
        settings = current_settings()
        with noting(file) as noted:
            update = await run(state, settings)
        return _completed(update, noted)

    def called(state: State) -> Update:
        return blocking(awaited(state))

    return RunnableLambda(called, afunc=awaited, name=name)


def current_settings() -> Settings:
    """Return the settings of the run, or the defaults if the caller passed none.

    LangGraph validates a mapping against the schema before the run starts, but not for a node of a
    user's graph without this schema: there one that holds nothing but settings is read here. Where
    the context is anything else, and where a state is edited, the defaults apply.

    Raises:
        SettingsError: a mapping of settings holds an invalid value.
    """
    runtime: Runtime[Any] | None = get_runtime()  # None while `update_state` asks a router.
    context = runtime.context if runtime else None
    if isinstance(context, Settings):
        return context
    if isinstance(context, Mapping) and context.keys() <= Settings.model_fields.keys():
        return settings_from(context)
    return _DEFAULTS


def _completed(update: Update, noted: list[Event]) -> Update:
    """Add to an update the events that parts noted."""
    if noted and not isinstance(update, Command):
        update = {**update, "events": [*noted, *(update.get("events") or [])]}
    return update
