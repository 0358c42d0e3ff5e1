"""Questions and their answers as a stream, on threads that belong to a user.

A turn is one checkpoint. A run ends when its client goes away, and one thread answers one question
at a time: a newer one takes the place of the older, whose client is told, whichever processes they
run in.
"""

import asyncio
import hashlib
import logging
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from crag.errors import CragError
from crag.plain import said, without_credentials
from crag.serve.storage import Storage
from crag.text.thoughts import AnswerStream

SECONDS = 900
"""Longest time that an answer may take."""
HEARTBEAT = 10
"""Seconds between the comments that keep a silent stream open."""
LOOK = 0.5
"""Seconds between looks at whether a thread was asked something newer, or deleted."""
Graph = CompiledStateGraph[Any, Any, Any, Any]
Tell = Callable[[str, object], None]
_logger = logging.getLogger(__name__)


class Ask(BaseModel):
    """A question, or without one the reply to what a run asked a human."""

    model_config = ConfigDict(extra="forbid")

    graph: str = "crag"
    thread: str | None = Field(None, pattern=r"^[\w-]{1,64}$")
    """Unset, a new one."""
    question: str | None = None
    resume: Any = None
    checkpoint: str | None = None
    """The turn to go on from; unset, the latest."""
    settings: dict[str, Any] = {}


def owner_of(user: str) -> str:
    """Return the name of all that is a user's: the one function that says whose a thread is."""
    return hashlib.sha256(user.encode()).hexdigest()[:32]


class Place(NamedTuple):
    """Where a thread of a user is kept; a request of somebody else cannot name it."""

    owner: str
    thread: str

    @property
    def key(self) -> str:
        """The thread's id in LangGraph's checkpointer."""
        return f"{self.owner}/{self.thread}"

    def config(self, checkpoint: str | None = None) -> RunnableConfig:
        """Return what LangGraph goes on from: a checkpoint, or else the latest."""
        at = {"checkpoint_id": checkpoint} if checkpoint else {}
        return {"configurable": {"thread_id": self.key, **at}}


class Conversations:
    """The conversations of all users, and what this process is answering."""

    def __init__(self, graphs: Mapping[str, Graph], storage: Storage) -> None:
        self._graphs = {
            name: graph.copy({"checkpointer": storage.saver}) for name, graph in graphs.items()
        }
        self._saver, self._store, self._lists, self._turn = storage
        self._runs: set[asyncio.Task[None]] = set()

    async def ask(self, user: str, asked: Ask) -> AsyncIterator[ServerSentEvent]:
        """Return the events of an answer: `thread`, `tasks`, `messages`, and `end` or `error`.

        Raises:
            HTTPException: there is no such graph or thread, or nothing waits for a reply.
        """
        if asked.graph not in self._graphs:
            there = ", ".join(self._graphs)
            raise HTTPException(404, f"there is no graph {asked.graph!r}; there are {there}")
        place = Place(owner_of(user), asked.thread or str(uuid.uuid4()))
        question = (await self._listed(place))["question"] if asked.thread else asked.question
        at = asked.checkpoint and place.config(asked.checkpoint)
        if at and await self._saver.aget_tuple(at) is None:
            raise HTTPException(404, "there is no such turn on this conversation")
        if asked.question is None:
            latest = await self._latest(place, asked.graph)
            if not (latest and latest.interrupts):
                raise HTTPException(409, "nothing waits for a reply on this conversation")
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        listed = {"graph": asked.graph, "changed": now, "question": question}
        # Before the answer: who asks again after a crash finds the conversation, and what is still
        # being answered on it ends.
        await self._store.aput(("threads", place.owner), place.thread, listed)
        return self._events(place, asked, now)

    async def _events(
        self, place: Place, asked: Ask, changed: str
    ) -> AsyncIterator[ServerSentEvent]:
        events: asyncio.Queue[ServerSentEvent | None] = asyncio.Queue()

        def tell(event: str, data: object) -> None:
            events.put_nowait(ServerSentEvent(as_json(data).decode(), event=event))

        # In a task of its own, cancelled once: LangGraph leaves its nodes running where it is
        # cancelled again and again, as Starlette's tasks are.
        task = asyncio.create_task(self._run(place, asked, tell))
        watching = asyncio.create_task(self._watch(place, changed, task, tell))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            yield ServerSentEvent(place.thread, event="thread")
            while (event := await events.get()) is not None:
                yield event
        finally:
            watching.cancel()
            _cancel(task)

    async def _run(self, place: Place, asked: Ask, tell: Tell) -> None:
        try:
            async with asyncio.timeout(SECONDS), self._turn(place.key):
                await self._answer(place, asked, tell)
        except TimeoutError:
            tell("error", {"error": "timeout", "message": f"no answer within {SECONDS} seconds"})
        except Exception as error:  # The edge: its client is told.
            if not isinstance(error, CragError):  # Which is the client's own to mend.
                _logger.exception("A question failed")
            message = without_credentials(said(error))
            tell("error", {"error": type(error).__name__, "message": message})

    async def _watch(
        self, place: Place, changed: str, task: asyncio.Task[None], tell: Tell
    ) -> None:
        """End a run when its thread was asked something newer, or deleted, by any process."""
        is_newest = True
        while is_newest:
            await asyncio.sleep(LOOK)
            with suppress(Exception):  # A database that fails when it is looked at may not later.
                item = await self._lists.aget(("threads", place.owner), place.thread)
                is_newest = item is not None and item.value["changed"] == changed
        message = "the conversation was deleted, or a newer question on it took its place"
        tell("error", {"error": "replaced", "message": message})
        _cancel(task)

    async def _answer(self, place: Place, asked: Ask, tell: Tell) -> None:
        graph, config = self._graphs[asked.graph], place.config(asked.checkpoint)
        given: Any = Command(resume=asked.resume)
        if asked.question is not None:
            given = {"messages": [{"role": "user", "content": asked.question}]}
            if asked.checkpoint is None:  # Not from a turn that was stopped or failed.
                latest = await self._latest(place, asked.graph)
                config = place.config(_checkpoint(latest.config) if latest else None)
                if latest is None:
                    await self._saver.adelete_thread(place.key)
        stream: Any = graph.astream(
            given, config, context=asked.settings, subgraphs=True,
            stream_mode=["tasks", "messages"], durability="exit",
        )  # fmt: skip
        replies: defaultdict[str | None, AnswerStream] = defaultdict(AnswerStream)
        async for space, mode, chunk in stream:
            part = chunk
            if mode == "messages":  # What a model writes to itself is shown to nobody.
                message, metadata = chunk
                text = replies[message.id].add(message.text)
                part = message.model_copy(update={"content": text}), metadata
            tell("|".join([mode, *space]), part)
        state = await graph.aget_state(place.config())
        waits = bool(state.interrupts)
        tell("end", {"checkpoint": _checkpoint(state.config), "waits": waits})

    async def threads(self, user: str) -> list[dict[str, Any]]:
        """Return the threads of a user, the latest first."""
        items = await self._lists.asearch(("threads", owner_of(user)), limit=1000)
        listed = [{"thread": item.key, **item.value} for item in items]
        return sorted(listed, key=itemgetter("changed"), reverse=True)

    async def turns(self, user: str, thread: str) -> list[dict[str, Any]]:
        """Return the turns of a thread, the latest first; a turn goes on from its `parent`."""
        place = Place(owner_of(user), thread)
        graph = (await self._listed(place))["graph"]
        return [
            {
                "checkpoint": _checkpoint(state.config),
                "parent": _checkpoint(state.parent_config),
                "values": state.values,
                "interrupts": [interrupt.value for interrupt in state.interrupts],
            }
            async for state in self._states(place, graph)
        ]

    async def delete(self, user: str, thread: str) -> None:
        """Delete a thread, and stop what is being answered on it."""
        place = Place(owner_of(user), thread)
        await self._listed(place)
        await self._store.adelete(("threads", place.owner), thread)
        async with self._turn(place.key):  # When what is being answered has ended.
            await self._saver.adelete_thread(place.key)

    async def close(self) -> None:
        """Stop all that is being answered."""
        runs = set(self._runs)
        for task in runs:
            _cancel(task)
        await asyncio.gather(*runs, return_exceptions=True)

    async def _listed(self, place: Place) -> dict[str, Any]:
        """Return what the list says of a thread; the user may have none of this name."""
        item = await self._lists.aget(("threads", place.owner), place.thread)
        if item is None:
            raise HTTPException(404, "there is no such conversation")
        return item.value

    async def _states(self, place: Place, graph: str) -> AsyncIterator[StateSnapshot]:
        """Yield the states at which runs ended or wait for a human, the latest first."""
        async for state in self._graphs[graph].aget_state_history(place.config()):
            if not state.next or state.interrupts:
                yield state

    async def _latest(self, place: Place, graph: str) -> StateSnapshot | None:
        return await anext(self._states(place, graph), None)


def _cancel(task: asyncio.Task[None]) -> None:
    if not task.cancelling():
        task.cancel()


def _checkpoint(config: RunnableConfig | None) -> str | None:
    return config["configurable"].get("checkpoint_id") if config else None


def as_json(value: object) -> bytes:
    """Return a value as JSON: messages and documents too, and null for what is no number."""
    return to_json(value, fallback=str, inf_nan_mode="null")
