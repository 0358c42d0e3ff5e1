"""The addresses of the production server, asked with LangGraph's SDK in the process of the test."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_sdk.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    UnprocessableEntityError,
)

from crag.server.streaming import parts
from crag.testing import FakeChatModel
from tests.production.conftest import Serving, State
from tests.production.test_app import new_thread


class Waiting:
    """A node that waits until it is let go, or cancelled."""

    def __init__(self) -> None:
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def __call__(self, state: State) -> State:
        self.begun.set()
        await self.over.wait()
        return {"answer": state["question"].upper()}

    async def start(self, client: Any, thread: str, question: str = "kettle") -> str:
        """Run on a thread, and return when the node is at work."""
        self.begun.clear()
        run = await client.runs.create(thread, "crag", input={"question": question})
        await asyncio.wait_for(self.begun.wait(), 10)
        return str(run["run_id"])


async def state_of(client: Any, thread: str, question: str = "kettle") -> dict[str, Any]:
    found: dict[str, Any] = await client.runs.wait(thread, "crag", input={"question": question})
    return found


async def statuses(client: Any, thread: str) -> dict[str, str]:
    return {run["run_id"]: run["status"] for run in await client.runs.list(thread)}


async def test_the_assistants_are_the_graphs(serving: Serving) -> None:
    async with serving() as client:
        assert (await client.http.get("/info"))["flags"] == {"assistants": True, "crons": False}
        (found,) = await client.assistants.search()
        assert (found["graph_id"], found["name"], found["version"]) == ("crag", "crag", 1)
        assert await client.assistants.search(metadata={"created_by": "system"}) == [found]
        for none in ({"graph_id": "self_rag"}, {"metadata": {"created_by": "me"}}, {"offset": 1}):
            assert await client.assistants.search(**none) == []
        assert await client.assistants.count() == 1
        assert await client.assistants.get(found["assistant_id"]) == found
        for xray in (False, True, 1):
            drawn = await client.assistants.get_graph("crag", xray=xray)
            assert {node["id"] for node in drawn["nodes"]} == {"__start__", "ask", "__end__"}
        schemas = await client.assistants.get_schemas("crag")
        assert set(schemas["input_schema"]["properties"]) == {"question", "answer"}
        with pytest.raises(UnprocessableEntityError, match="one of the graphs: crag"):
            await client.assistants.get("self_rag")
        with pytest.raises(NotFoundError):
            await client.assistants.get("0" * 8 + "-0000-0000-0000-" + "0" * 12)


async def test_states_are_listed_changed_and_gone_back_to(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        assert (await client.threads.get_state(thread))["values"] == {}
        assert await client.threads.get_history(thread) == []
        with pytest.raises(BadRequestError, match="no graph yet"):
            await client.threads.update_state(thread, {"answer": "none"})
        await state_of(client, thread)
        last, before, first = await client.threads.get_history(thread)
        assert [one["next"] for one in (last, before, first)] == [[], ["ask"], ["__start__"]]
        assert len(await client.threads.get_history(thread, limit=2)) == 2
        assert await client.threads.get_history(thread, before=before["checkpoint_id"]) == [first]
        assert len(await client.http.get(f"/threads/{thread}/history?limit=1")) == 1
        assert await client.threads.get_state(thread, before["checkpoint"]) == before
        assert await client.threads.get_state(thread, checkpoint_id=first["checkpoint_id"]) == first

        changed = await client.threads.update_state(
            thread, {"question": "violin"}, as_node="__start__"
        )
        assert (await client.threads.get(thread))["status"] == "interrupted"
        state: Any = await client.runs.wait(
            thread, "crag", checkpoint_id=changed["checkpoint"]["checkpoint_id"]
        )
        assert state["answer"] == "VIOLIN"
        with pytest.raises(BadRequestError, match="no node"):
            await client.threads.update_state(thread, {"answer": "x"}, as_node="no node")


async def test_threads_are_counted_and_found(serving: Serving) -> None:
    async with serving() as client:
        first, second = [await new_thread(client) for _ in range(2)]
        await client.threads.update(first, metadata={"of": "others"})
        assert await client.threads.count() == 2
        assert await client.threads.count(metadata={"of": "others"}) == 1
        found = await client.threads.search(sort_by="created_at", sort_order="asc")
        assert [one["thread_id"] for one in found] == [first, second]


async def test_runs_are_listed_and_removed_when_they_have_ended(serving: Serving) -> None:
    node = Waiting()
    async with serving(node) as client:
        thread = await new_thread(client)
        run = await node.start(client, thread)
        assert await statuses(client, thread) == {run: "running"}
        with pytest.raises(ConflictError, match="cancel it first"):
            await client.runs.delete(thread, run)
        node.over.set()
        await client.runs.join(thread, run)
        await client.runs.delete(thread, run)
        assert await statuses(client, thread) == {}
        with pytest.raises(NotFoundError):
            await client.runs.get(thread, run)
        for query in ("limit=many", "offset=-1"):
            with pytest.raises(UnprocessableEntityError, match="whole numbers"):
                await client.http.get(f"/threads/{thread}/runs?{query}")


@pytest.mark.parametrize("wait", [False, True])
async def test_a_run_is_cancelled(serving: Serving, wait: bool) -> None:
    node = Waiting()
    async with serving(node) as client:
        thread = await new_thread(client)
        run = await node.start(client, thread)
        with pytest.raises(UnprocessableEntityError, match="interrupt, rollback"):
            await client.http.post(f"/threads/{thread}/runs/{run}/cancel?action=stop", json=None)
        await client.runs.cancel(thread, run, wait=wait)
        if not wait:
            await client.runs.join(thread, run)
        assert await statuses(client, thread) == {run: "interrupted"}
        assert (await client.threads.get(thread))["status"] == "interrupted"  # It can go on.


async def test_a_run_that_is_rolled_back_was_never_there(serving: Serving) -> None:
    node = Waiting()
    async with serving(node) as client:
        thread = await new_thread(client)
        run = await node.start(client, thread)
        await client.runs.cancel(thread, run, wait=True, action="rollback")
        assert await statuses(client, thread) == {}
        assert await client.threads.get_history(thread) == []


async def test_a_second_run_waits_is_refused_or_takes_the_place(serving: Serving) -> None:
    node = Waiting()
    async with serving(node) as client:
        thread = await new_thread(client)
        first = await node.start(client, thread)
        new: dict[str, Any] = {"assistant_id": "crag", "input": {"question": "violin"}}
        with pytest.raises(ConflictError, match="already running"):
            await client.runs.create(thread, **new, multitask_strategy="reject")
        waiting = await client.runs.create(thread, **new, multitask_strategy="enqueue")
        dropped = await client.runs.create(thread, **new, multitask_strategy="rollback")
        # The first is rolled back, the one that waited has never begun: neither leaves a trace.
        node.over.set()
        state: Any = await client.runs.join(thread, dropped["run_id"])
        assert state["answer"] == "VIOLIN"
        assert await statuses(client, thread) == {dropped["run_id"]: "success"}
        assert {first, waiting["run_id"]}.isdisjoint(await statuses(client, thread))

        node.over.clear()
        begun = await node.start(client, thread)
        later = await client.runs.create(thread, **new)
        last = await client.runs.create(thread, **new, multitask_strategy="interrupt")
        node.over.set()
        await client.runs.join(thread, last["run_id"])
        found = await statuses(client, thread)
        assert [found[one] for one in (begun, later["run_id"], last["run_id"])] == [
            "interrupted", "interrupted", "success",
        ]  # fmt: skip


async def test_a_run_whose_client_leaves_is_cancelled_where_it_asked_for_it(
    serving: Serving,
) -> None:
    node = Waiting()
    async with serving(node) as client:
        thread = await new_thread(client)
        asked: dict[str, Any] = {"input": {"question": "kettle"}, "on_disconnect": "cancel"}

        async def follow() -> None:
            async for _ in client.runs.stream(thread, "crag", **asked):
                pass

        following = asyncio.create_task(follow())
        await asyncio.wait_for(node.begun.wait(), 10)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        (run,) = await statuses(client, thread)
        async with asyncio.timeout(10):
            while (await client.runs.get(thread, run))["status"] == "running":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await statuses(client, thread) == {run: "interrupted"}


async def test_messages_are_streamed_as_they_grow(serving: Serving) -> None:
    model = FakeChatModel(replies=["The kettle is red."])

    async def say(_: State, config: RunnableConfig) -> State:
        return {"answer": (await model.ainvoke("Which colour?", config)).text}

    async with serving(say) as client:
        asked: dict[str, Any] = {"input": {"question": "kettle"}, "stream_mode": "messages"}
        told = [part async for part in client.runs.stream(None, "crag", **asked)]
        first, *grown = [part for part in told if part.event.startswith("messages/")]
        assert first.event == "messages/metadata"
        texts = [part.data[0]["content"] for part in grown if part.event == "messages/partial"]
        assert texts[-1] == "The kettle is red."
        assert all(later.startswith(before) for before, later in pairwise(texts))


async def test_a_message_that_is_whole_is_streamed_once() -> None:
    built = StateGraph(MessagesState)
    built.add_node("say", lambda _: {"messages": [AIMessage("Red.", id="1")]})
    built.add_edge(START, "say")
    graph: Any = built.compile(InMemorySaver())
    here: RunnableConfig = {"configurable": {"thread_id": "1"}}
    streamed = parts(graph, {}, here, context=None, modes=["messages"], subgraphs=False)
    assert [event async for event, _ in streamed] == ["messages/metadata", "messages/complete"]


async def test_settings_that_a_graph_does_not_have_are_ignored(serving: Serving) -> None:
    async with serving() as client:
        state: Any = await client.runs.wait(
            None, "crag", input={"question": "kettle"}, context={"upper": 0.5}
        )
        assert state["answer"] == "KETTLE"


async def test_what_a_run_raises_is_told_without_its_words(serving: Serving) -> None:
    async def fails(_: State) -> State:
        raise ArithmeticError("sk-secret")

    async with serving(fails) as client:
        thread = await new_thread(client)
        with pytest.raises(Exception, match="ArithmeticError: An internal error occurred"):
            await state_of(client, thread)
        assert (await client.threads.get(thread))["status"] == "error"
        assert "sk-secret" not in str(await client.threads.get(thread))


@pytest.mark.parametrize(
    ("path", "sent", "told"),
    [
        ("/threads", "{", "Invalid JSON in request body"),
        ("/threads", "[]", "the body: Input should be"),
        ("/threads", '{"thread_id": "kettle"}', "thread_id: Input should be a valid UUID"),
        ("/threads/search", '{"limit": 0}', "limit: Input should be greater than or equal to 1"),
        ("/runs/wait", '{"assistant_id": "crag", "stream_mode": ["all"]}', "all: allowed are"),
        ("/runs/wait", '{"assistant_id": "crag", "stream_mode": 5}', "stream_mode: Input should"),
        ("/runs/wait", '{"assistant_id": "self_rag"}', "one of the graphs: crag"),
    ],
)
async def test_a_wrong_body_is_refused_with_the_field(
    serving: Serving, path: str, sent: str, told: str
) -> None:
    async with serving() as client:
        http, kind = client.http.client, {"Content-Type": "application/json"}
        refused = await http.post(path, content=sent, headers=kind)
        assert refused.status_code == 422
        assert told in refused.json()["detail"]
        assert (await http.post("/threads", content="null", headers=kind)).status_code == 200
