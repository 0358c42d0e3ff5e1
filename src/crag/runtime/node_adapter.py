"""Run a node in LangGraph with the settings of the run."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langgraph.runtime import Runtime, get_runtime

from crag.settings import Settings

State = Any
Update = Any
_DEFAULTS: Final = Settings()


class Node(Protocol):
    """A node; one that waits for a model or a retriever has `arun` as well, which awaits it."""

    def run(self, state: State, settings: Settings) -> Update:
        """Return the update of the state."""
        ...


class as_node(Runnable[State, Update]):  # noqa: N801 - it is called as a function
    """A node as LangGraph runs it, once in a trace; for callers that await, in a thread.

    A node with `arun` needs no thread, so that many runs may wait at once.
    """

    def __init__(self, node: Node) -> None:
        self._node, self.name = node, type(node).__name__

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as of a Runnable
        """Run the node."""
        del config
        return self._node.run(input, current_settings())

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as of a Runnable
        """Run the node without blocking the event loop."""
        settings, arun = current_settings(), getattr(self._node, "arun", None)
        if arun is not None:
            return await arun(input, settings)
        return await run_in_executor(config, self._node.run, input, settings)


def current_settings() -> Settings:
    """Return the settings of the run, or the defaults if the caller passed none.

    In a user's graph without this schema, a mapping of nothing but settings is read here.

    Raises:
        SettingsError: a mapping of settings holds an invalid value.
    """
    runtime: Runtime[Any] | None = get_runtime()  # None while `update_state` asks a router.
    context = runtime.context if runtime else None
    if isinstance(context, Settings):
        return context
    if isinstance(context, Mapping) and context.keys() <= Settings.model_fields.keys():
        return Settings.model_validate(context)
    return _DEFAULTS
