"""Questions and their answers as a stream, on threads that belong to a user.

A turn is one checkpoint. A run ends when its client goes away, and one thread answers one question
at a time: a newer one takes the place of the older, whose client is told.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import Item
from langgraph.types import Command, StateSnapshot
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from crag.plain import said, without_credentials
from crag.serve.storage import Place, Storage, place_of

SECONDS = 900
"""Longest time that an answer may take."""
Graph = CompiledStateGraph[Any, Any, Any, Any]
Tell = Callable[[str, object], None]

_logger = logging.getLogger(__name__)


class Ask(BaseModel):
    """A question, or the reply to what a run asked a human."""

    model_config = ConfigDict(extra="forbid")

    graph: str = "crag"
    thread: str | None = Field(None, pattern=r"^[\w-]{1,64}$")
    """Unset, a new one."""
    question: str | None = None
    resume: Any = None
    """Without a question: what a human replied to the run that waits."""
    checkpoint: str | None = None
    """The turn to go on from; unset, the latest."""
    settings: dict[str, Any] = {}

    def input(self) -> Any:
        """Return what the graph is given."""
        if self.question is None:
            return Command(resume=self.resume)
        return {"messages": [{"role": "user", "content": self.question}]}


class _Run(NamedTuple):
    task: asyncio.Task[None]
    tell: Tell


class Conversations:
    """The conversations of all users, and what this process is answering."""

    def __init__(self, graphs: Mapping[str, Graph], storage: Storage) -> None:
        self._graphs, self._storage = graphs, storage
        self._runs: dict[str, _Run] = {}

    async def ask(self, user: str, asked: Ask) -> AsyncIterator[ServerSentEvent]:
        """Return the events of an answer: `thread`, `tasks`, `messages`, and `end` or `error`.

        Raises:
            HTTPException: there is no such graph or thread, or nothing waits for a reply.
        """
        graph = self._graph(asked.graph)
        place = place_of(user, asked.thread or str(uuid.uuid4()))
        thread = await self._item(place) if asked.thread else None
        if asked.question is None:
            latest = await _latest_turn(graph, place)
            if not (latest and latest.interrupts):
                raise HTTPException(409, "nothing waits for a reply on this conversation")
        first = thread.value["question"] if thread else asked.question
        # Before the answer: who asks again after a crash finds the conversation.
        now = datetime.now(UTC).isoformat(timespec="seconds")
        kept = {"graph": asked.graph, "changed": now, "question": first}
        await self._storage.store.aput(place.listed, place.thread, kept)
        return self._events(graph, place, asked)

    async def _events(
        self, graph: Graph, place: Place, asked: Ask
    ) -> AsyncIterator[ServerSentEvent]:
        events: asyncio.Queue[tuple[str, object]] = asyncio.Queue()

        def tell(event: str, data: object) -> None:
            events.put_nowait((event, data))

        earlier = self._runs.get(place.key)
        # In a task of its own, cancelled once: LangGraph leaves its nodes running where it is
        # cancelled again and again, as Starlette's tasks are.
        task = asyncio.create_task(self._run(graph, place, asked, tell, earlier))
        self._runs[place.key] = _Run(task, tell)
        task.add_done_callback(lambda _: tell("", None))
        try:
            yield ServerSentEvent(place.thread, event="thread")
            while (told := await events.get())[0]:
                yield ServerSentEvent(as_json(told[1]).decode(), event=told[0])
        finally:
            task.cancel()
            if self._runs.get(place.key, (None,))[0] is task:
                del self._runs[place.key]

    async def _run(
        self, graph: Graph, place: Place, asked: Ask, tell: Tell, earlier: _Run | None
    ) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                if earlier:
                    await _replace(earlier)
                async with self._storage.turn(place.key):
                    await self._answer(graph, place, asked, tell)
        except TimeoutError:
            tell("error", {"error": "timeout", "message": f"no answer within {SECONDS} seconds"})
        except Exception as error:  # The edge: its client is told.
            _logger.exception("A question failed")
            message = without_credentials(said(error))
            tell("error", {"error": type(error).__name__, "message": message})

    async def _answer(self, graph: Graph, place: Place, asked: Ask, tell: Tell) -> None:
        config = place.config(asked.checkpoint)
        if asked.question is not None and asked.checkpoint is None:
            config = await self._after_latest(graph, place)
        stream = graph.astream(
            asked.input(), config, context=asked.settings, subgraphs=True,
            stream_mode=["tasks", "messages"], durability="exit",
        )  # fmt: skip
        async for space, mode, chunk in stream:
            tell("|".join([mode, *space]), chunk)
        state = await graph.aget_state(place.config())
        waits = bool(state.interrupts)
        tell("end", {"checkpoint": _checkpoint(state.config), "waits": waits})

    async def _after_latest(self, graph: Graph, place: Place) -> RunnableConfig:
        """Return where the next question goes on: not from a turn that was stopped or failed."""
        latest = await _latest_turn(graph, place)
        if latest is None:
            await self._storage.saver.adelete_thread(place.key)
        return place.config(_checkpoint(latest.config) if latest else None)

    async def threads(self, user: str) -> list[dict[str, Any]]:
        """Return the threads of a user, the latest first."""
        kept = await self._storage.store.asearch(place_of(user).listed, limit=1000)
        listed = [{"thread": one.key, **one.value} for one in kept]
        return sorted(listed, key=itemgetter("changed"), reverse=True)

    async def turns(self, user: str, thread: str) -> list[dict[str, Any]]:
        """Return the turns of a thread, the latest first; a turn goes on from its `parent`.

        Raises:
            HTTPException: the user has no such thread.
        """
        place = place_of(user, thread)
        graph = self._graph((await self._item(place)).value["graph"])
        return [
            {
                "checkpoint": _checkpoint(state.config),
                "parent": _checkpoint(state.parent_config),
                "values": state.values,
                "interrupts": [interrupt.value for interrupt in state.interrupts],
            }
            async for state in graph.aget_state_history(place.config())
            if _is_turn(state)
        ]

    async def delete(self, user: str, thread: str) -> None:
        """Delete a thread, and stop what is being answered on it.

        Raises:
            HTTPException: the user has no such thread.
        """
        place = place_of(user, thread)
        await self._item(place)
        if run := self._runs.get(place.key):
            await _replace(run, "the conversation was deleted")
        await self._storage.saver.adelete_thread(place.key)
        await self._storage.store.adelete(place.listed, thread)

    async def close(self) -> None:
        """Stop all that is being answered."""
        for run in list(self._runs.values()):
            await _replace(run, "the server ends: ask again")

    def _graph(self, name: str) -> Graph:
        if name not in self._graphs:
            raise HTTPException(
                404, f"there is no graph {name!r}; there are {', '.join(self._graphs)}"
            )
        return self._graphs[name]

    async def _item(self, place: Place) -> Item:
        item = await self._storage.store.aget(place.listed, place.thread)
        if item is None:
            raise HTTPException(404, "there is no such conversation")
        return item


async def _replace(
    run: _Run, why: str = "a newer question on this conversation took its place"
) -> None:
    """End a run, and wait until it has: what it keeps must come before what the next one does."""
    if not run.task.done():
        run.tell("error", {"error": "replaced", "message": why})
        run.task.cancel()
        await asyncio.wait({run.task})


async def _latest_turn(graph: Graph, place: Place) -> StateSnapshot | None:
    async for state in graph.aget_state_history(place.config()):
        if _is_turn(state):
            return state
    return None


def _is_turn(state: StateSnapshot) -> bool:
    """Whether a run came to its end, or waits for a human."""
    return not state.next or bool(state.interrupts)


def _checkpoint(config: RunnableConfig | None) -> str | None:
    return config["configurable"].get("checkpoint_id") if config else None


def as_json(value: object) -> bytes:
    """Return a value as JSON: messages and documents too, and null for what is no number."""
    return to_json(value, fallback=str, inf_nan_mode="null")
