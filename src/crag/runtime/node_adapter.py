"""Run a node in LangGraph with the settings of the run."""

import os
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, run_in_executor
from langgraph.runtime import Runtime, get_runtime

from crag.runtime.calls import cancellable
from crag.settings import Settings

THREADS = 64
"""Nodes of a process that compute or wait at once; the threads of a loop are four more than cores,
and a node that reads pages would keep other runs from them."""
State = Any
Update = Any


class as_node(Runnable[State, Update]):  # noqa: N801 - it is called as a function
    """A node as LangGraph runs it, once in a trace; for callers that await, in a thread.

    A node is a function of the state, the settings and the parts given here, or an object whose
    `run` is one. One that waits for a model or a retriever has `arun` too, and needs no thread, so
    that many runs may wait at once.
    """

    def __init__(self, node: Any, *parts: Any, **options: Any) -> None:
        self.name = str(getattr(node, "__name__", type(node).__name__))
        self._run = partial(getattr(node, "run", node), **options)
        self._arun, self._parts = getattr(node, "arun", None), parts

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as of a Runnable
        """Run the node."""
        del config
        return self._run(input, current_settings(), *self._parts)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as of a Runnable
        """Run the node without blocking the event loop."""
        del config
        settings = current_settings()
        if self._arun is not None:
            return await self._arun(input, settings)
        threads = _threads_of(os.getpid())
        with cancellable():
            return await run_in_executor(threads, self._run, input, settings, *self._parts)


@cache
def _threads_of(process: int) -> ContextThreadPoolExecutor:
    del process  # Another one, which was forked, has none of these threads.
    return ContextThreadPoolExecutor(THREADS, "node")


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
    return Settings()
