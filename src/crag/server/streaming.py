"""From a graph's stream to the parts that clients of LangGraph's API expect."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, cast, get_type_hints
from uuid import UUID

from langchain_core.messages import BaseMessageChunk, convert_to_messages, message_chunk_to_message
from langchain_core.runnables import RunnableConfig
from langgraph.channels.base import BaseChannel
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command, PregelTask, Send, StateSnapshot
from langgraph_sdk.schema import ThreadStatus

from crag.server.database import Graph

Mode = Literal[
    "values", "updates", "messages", "messages-tuple", "tasks", "checkpoints", "custom", "debug"
]
"""Stream modes that are served; what LangChain calls `events` is not."""
Part = tuple[str, Any]
UNFIT = (InvalidUpdateError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError)
"""What a graph raises when it is given what its state cannot take."""


def check_values(graph: Graph, values: object, field: str) -> None:
    """Refuse values that the state of a graph cannot take: their thread could not be read either.

    What comes as `input` is looked at as far as the graph takes it.

    Raises:
        InvalidUpdateError: one of them is wrong; the message begins with its place within `field`.
    """
    built: Any = cast("Any", graph).builder
    channels = built.schemas[built.input_schema] if field == "input" else built.channels
    for name, value in values.items() if isinstance(values, Mapping) else ():
        channel = channels.get(name)
        try:
            # Messages not by their reducer, which looks for those to be removed.
            if channel and name == "messages" and value is not None:
                convert_to_messages(value if isinstance(value, list) else [value])
            elif isinstance(channel, BaseChannel):
                channel.copy().update([value])
        except UNFIT as error:
            said = str(error).partition("\nFor troubleshooting")[0]
            raise InvalidUpdateError(f"{field}.{name}: {said}") from None


def command(given: Mapping[str, Any]) -> Command[Any]:
    """Return what a client sent as `command`."""
    goto = given.get("goto") or ()
    steps = [goto] if isinstance(goto, str | Mapping) else goto
    sent = [step if isinstance(step, str) else Send(step["node"], step["input"]) for step in steps]
    return Command(**{**given, "goto": sent})


async def parts(
    graph: Graph, given: object, config: RunnableConfig, request: Mapping[str, Any]
) -> AsyncIterator[Part]:
    """Run a graph as the body of a request asks for; yield each part with the name of its event.

    Within a subgraph the name has a namespace, as in ``updates|web:…``.
    """
    modes, subgraphs = request["stream_mode"], request.get("stream_subgraphs", False)
    wanted: Any = {"messages" if mode == "messages-tuple" else mode for mode in modes}
    grown: dict[str | None, BaseMessageChunk] = {}
    # As LangGraph does: settings are also read where they were before there was a context, and
    # what the graph has no setting for is ignored.
    context = request.get("context") or (request.get("config") or {}).get("configurable")
    if context is not None:
        known = get_type_hints(graph.context_schema or object)
        context = {name: value for name, value in context.items() if name in known}
    stream: AsyncIterator[Any] = graph.astream(
        given, config, context=context,
        stream_mode=sorted(wanted), subgraphs=subgraphs,
        interrupt_before=request.get("interrupt_before") or None,
        interrupt_after=request.get("interrupt_after") or None,
        durability=request.get("durability") or "async",
    )  # fmt: skip
    async for item in stream:
        within, mode, data = item if subgraphs else ((), *item)
        if mode == "messages" and "messages-tuple" not in modes:
            for part in _messages(data, grown):
                yield part
        else:
            yield "|".join((mode, *within)), data


def _messages(data: Any, grown: dict[str | None, BaseMessageChunk]) -> list[Part]:
    """Return a message as far as it has grown, and what is known of it when it is new."""
    message, about = data
    before = grown.get(message.id)
    new = [] if before else [("messages/metadata", {message.id: {"metadata": about}})]
    if not isinstance(message, BaseMessageChunk):
        grown[message.id] = message
        return [*new, ("messages/complete", [message])]
    grown[message.id] = before + message if before else message
    return [*new, ("messages/partial", [message_chunk_to_message(grown[message.id])])]


def checkpoint_of(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the address of a checkpoint, whose id is None where there is none."""
    found = (config or {}).get("configurable", {})
    names = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
    known = {name: found[name] for name in names if name in found}
    return {"checkpoint_ns": "", "checkpoint_id": None} | known


def place(thread_id: UUID, at: Mapping[str, Any] | None = None) -> RunnableConfig:
    """Return where LangGraph finds a checkpoint of a thread, by default the last one."""
    return {"configurable": {"thread_id": str(thread_id), "checkpoint_ns": "", **(at or {})}}


async def status_of(graph: Graph, thread_id: UUID) -> ThreadStatus:
    """Return what the state of a thread means for that: whether a human is asked."""
    return "interrupted" if (await graph.aget_state(place(thread_id))).next else "idle"


def state_of(found: StateSnapshot) -> dict[str, Any]:
    """Return the state of a thread in the form of LangGraph's API."""
    here, parent = checkpoint_of(found.config), checkpoint_of(found.parent_config)
    return {
        "values": found.values, "next": found.next, "metadata": found.metadata or {},
        "created_at": found.created_at, "tasks": [_task(task) for task in found.tasks],
        "checkpoint": here, "checkpoint_id": here["checkpoint_id"],
        "parent_checkpoint": parent if parent["checkpoint_id"] else None,
        "parent_checkpoint_id": parent["checkpoint_id"],
        "interrupts": found.interrupts,
    }  # fmt: skip


def _task(task: PregelTask) -> dict[str, Any]:
    state = task.state  # Of a subgraph: where it is, or all of it where it was asked for.
    return {
        "id": task.id, "name": task.name, "path": task.path, "result": task.result,
        "error": str(task.error) if task.error else None,
        "interrupts": task.interrupts,
        "checkpoint": None if isinstance(state, StateSnapshot | None) else state["configurable"],
        "state": state_of(state) if isinstance(state, StateSnapshot) else None,
    }  # fmt: skip
