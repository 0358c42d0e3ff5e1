"""The API in the process of the test: what clients may ask, and how they are refused."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from crag.errors import SettingsError
from crag.page.rules import Rules
from crag.server.app import create
from crag.server.streaming import parts
from crag.testing import FakeChatModel
from tests.production.conftest import Serving, State
from tests.production.test_app import new_thread

NO_THREAD = "9b1d0f5e-8a52-4a43-b0a5-5f6f0a3c2d11"
JSON: dict[str, Any] = {"headers": {"Content-Type": "application/json"}}


class Limits(TypedDict):
    """The settings of a graph."""

    k: int


async def holds(state: State) -> State:
    """Take for ever where the question says so."""
    if "wait" in state["question"]:
        await asyncio.Event().wait()
    return {"answer": state["question"].upper()}


def graph_that_says() -> Any:
    built = StateGraph(MessagesState)
    built.add_node("say", lambda _: {"messages": [AIMessage("Red.", id="1")]})
    built.add_edge(START, "say")
    return built.compile()


async def refused(client: Any, method: str, path: str, **sent: Any) -> tuple[int, str]:
    """Return the status and the detail of what is refused."""
    reply = await client.http.client.request(method, path, **sent)
    return reply.status_code, reply.json()["detail"]


async def test_the_assistants_are_the_graphs(serving: Serving) -> None:
    async with serving() as client:
        (found,) = await client.assistants.search()
        assert (found["graph_id"], found["metadata"]) == ("crag", {"created_by": "system"})
        assert await client.assistants.get(found["assistant_id"]) == found
        assert await client.assistants.search(graph_id="crag", limit=1) == [found]
        for none in ({"graph_id": "other"}, {"metadata": {"mine": True}}, {"name": "other"}):
            assert await client.assistants.search(**none) == []
            assert await client.http.post("/assistants/count", json=none) == 0
        assert await client.assistants.search(offset=1) == []
        assert await client.assistants.search(name="CRA") == [found]
        counted = await client.http.post("/assistants/count", json={"graph_id": "crag"})
        assert counted == 1
        for xray in (False, True, 1):
            drawn = await client.assistants.get_graph("crag", xray=xray)
            assert [node["id"] for node in drawn["nodes"]] == ["__start__", "ask", "__end__"]
        schemas = await client.assistants.get_schemas("crag")
        assert set(schemas["input_schema"]["properties"]) == {"question", "answer"}
        flags = (await client.http.get("/info"))["flags"]
        assert flags == {"assistants": True, "crons": False}


async def test_a_thread_is_made_once_searched_for_and_counted(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        assert (await client.threads.create(thread_id=thread, if_exists="do_nothing"))[
            "thread_id"
        ] == thread
        assert await refused(client, "POST", "/threads", json={"thread_id": thread}) == (
            409,
            f"Thread {thread} exists already.",
        )
        both = [thread, await new_thread(client)]
        assert await client.threads.count() == 2
        for by, order in (("created_at", both), ("thread_id", sorted(both)), ("status", None)):
            found = [await client.threads.search(sort_by=by, sort_order=way)  # type: ignore[arg-type]
                     for way in ("asc", "desc")]  # fmt: skip
            ids = [[one["thread_id"] for one in way] for way in found]
            expected = [order, order[::-1]] if order else [sorted(both)] * 2
            assert ids == expected, by
        assert await client.threads.count(status="busy") == 0
        changed = await client.threads.update(thread, metadata={"title": "Kettles"})
        assert changed["metadata"] == {"of": "test", "title": "Kettles"}
        (found,) = await client.threads.search(metadata={"title": "Kettles"})
        assert found["thread_id"] == thread


async def test_a_thread_is_found_by_the_graph_and_the_assistant_of_its_last_run(
    serving: Serving, database_url: str
) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        (assistant,) = await client.assistants.search()
        known = {name: assistant[name] for name in ("graph_id", "assistant_id")}
        assert await client.threads.search(metadata=known) == []
        await client.runs.wait(thread, "crag", input={"question": "Which"})
        for wanted in ({"graph_id": "crag"}, {"assistant_id": known["assistant_id"]}):
            (found,) = await client.threads.search(metadata=wanted)
            assert (found["thread_id"], found["metadata"]) == (thread, {"of": "test", **known})
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("UPDATE crag_threads SET metadata = '{}'")  # As they were once.
        (found,) = await client.threads.search(metadata={"graph_id": "crag"})
        assert (found["thread_id"], found["metadata"]) == (thread, {"graph_id": "crag"})


async def test_what_is_null_is_not_set_and_what_is_not_served_may_be_empty(
    serving: Serving,
) -> None:
    async with serving() as client:
        body: dict[str, Any] = {"supersteps": [], "if_exists": None, "metadata": None}
        thread = await client.http.post("/threads", json=body)
        body = {"values": {}, "limit": None, "sort_by": None, "sort_order": None}
        assert await client.http.post("/threads/search", json=body) == [thread]
        body = {"assistant_id": "crag", "input": {"question": "kettle"}, "after_seconds": 0}
        body |= {"stream_mode": None, "on_completion": None, "command": {"goto": None}}
        body |= {"config": {"tags": None, "configurable": None}, "durability": None}
        assert (await client.http.post("/runs/wait", json=body))["answer"] == "KETTLE"


async def test_a_remote_graph_reads_a_thread_before_its_first_run(serving: Serving) -> None:
    async with serving() as client:
        thread = (await client.threads.create(graph_id="crag"))["thread_id"]
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        state = await RemoteGraph("crag", client=client).aget_state(config)
        assert (state.values, state.config["configurable"]["checkpoint_id"]) == ({}, None)


async def test_a_thread_without_runs_has_a_state_without_values(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        state = await client.threads.get_state(thread)
        assert (state["values"], state["next"], state["checkpoint_id"]) == ({}, [], None)
        assert await client.threads.get_history(thread) == []
        assert (await client.threads.get(thread))["values"] is None
        path = f"/threads/{thread}/state"
        status, detail = await refused(client, "POST", path, json={"values": {}})
        assert (status, detail.partition(":")[0]) == (400, "The thread has no graph yet")


async def test_a_state_is_written_and_read_at_each_checkpoint(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        await client.runs.wait(thread, "crag", input={"question": "kettle"})
        written = await client.threads.update_state(thread, {"answer": "Tea."}, as_node="ask")
        assert (await client.threads.get_state(thread))["values"]["answer"] == "Tea."
        last, *before = await client.threads.get_history(thread, limit=10)
        assert last["checkpoint_id"] == written["checkpoint"]["checkpoint_id"]
        assert [state["values"].get("answer") for state in (last, *before)] == [
            "Tea.", "KETTLE", None, None,
        ]  # fmt: skip
        at = before[0]["checkpoint_id"]
        for asked in (at, before[0]["checkpoint"]):
            options = {"checkpoint_id": asked} if asked == at else {"checkpoint": asked}
            assert (await client.threads.get_state(thread, **options))["values"] == {
                "question": "kettle", "answer": "KETTLE",
            }  # fmt: skip
        older = await client.threads.get_history(thread, before=before[0]["checkpoint"])
        assert [state["checkpoint_id"] for state in older] == [
            state["checkpoint_id"] for state in before[1:]
        ]
        query = {"limit": "1", "before": at}
        shown = await client.http.client.get(f"/threads/{thread}/history", params=query)
        assert [state["checkpoint_id"] for state in shown.json()] == [before[1]["checkpoint_id"]]
        posted = await client.http.client.post(f"/threads/{thread}/history", params=query)
        assert posted.json() == shown.json()
        status, detail = await refused(
            client, "POST", f"/threads/{thread}/state", json={"values": {}, "as_node": "none"}
        )
        assert status == 400
        assert "none" in detail


WRONG: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("POST", "/runs/wait", {"content": b"{", **JSON}, 422, "Invalid JSON in request body: "),
    ("POST", "/runs/wait", {"content": b"null", **JSON}, 422, "assistant_id: Field required"),
    ("POST", "/runs/wait", {"json": [1]}, 422, "the body: Input should be a valid dict"),
    ("POST", "/threads/search", {"json": {"limit": 0}}, 422, "limit: Input should be greater"),
    ("POST", "/runs/wait", {"json": {"assistant_id": "rag"}}, 422,
     "Invalid assistant: 'rag'. It must be the id of an assistant, or one of the graphs: crag"),
    ("POST", "/runs/wait", {"json": {"assistant_id": NO_THREAD}}, 404,
     "Thread or assistant not found."),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "stream_mode": ["events", "x"]}}, 422,
     "stream_mode.0: Input should be 'values', 'updates', 'messages', 'messages-tuple', "),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "command": {"goto": 5}}}, 422,
     "command.goto.Send: Input should be a valid dict"),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "command": {"goto": {"node": "ask"}}}}, 422,
     "command.goto.Send.input: Field required"),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "config": {"recursion_limit": "x"}}}, 422,
     "config.recursion_limit: Input should be a valid integer"),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "config": {"metadata": [1]}}}, 422,
     "config.metadata: Input should be a valid dict"),
    ("POST", "/threads/search", {"json": {"values": {"question": "Which?"}}}, 422,
     "values: Value error, this server does not read it: search by metadata"),
    ("POST", "/threads", {"json": {"supersteps": [{}]}}, 422,
     "supersteps: Value error, this server does not read it: write the state afterwards"),
    ("POST", "/runs", {"json": {"assistant_id": "crag", "after_seconds": 60}}, 422,
     "after_seconds: Value error, this server does not read it: start the run at that time"),
    ("GET", "/threads/7", {}, 422, "Invalid thread ID: '7' is no UUID."),
    ("GET", f"/threads/{NO_THREAD}", {}, 404, "Thread not found."),
    ("GET", f"/threads/{NO_THREAD}/runs/7", {}, 422, "Invalid run ID: '7' is no UUID."),
    ("GET", "/crons", {}, 404, "there is no such address on this server"),
    ("DELETE", "/assistants/search", {}, 404, "there is no such address on this server"),
]  # fmt: skip


DIGITS, DEEP = "9" * 5000, "[" * 300 + "]" * 300
RUN, HERE = {"assistant_id": "crag"}, f"/threads/{NO_THREAD}"
NUL = "the character NUL (U+0000) cannot be stored, leave it out"
MESSAGE = [{"role": "zzz", "content": "?"}]
UNSTORABLE: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "/threads", {"json": {"metadata": {"a": {"b": [0, "\0"]}}}},
     f"metadata.a.b.1: {NUL}"),
    ("POST", "/threads", {"json": {"metadata": {"\0": 1}}}, f"metadata: {NUL}"),
    ("POST", "/threads", {"json": {"metadata": {"graph_id": {}}}},
     "metadata: Value error, graph_id"),
    ("POST", "/threads", {"content": f'{{"metadata": {{"a": {DEEP}}}}}', **JSON},
     "metadata: at most 200"),
    ("POST", "/threads", {"content": f'{{"metadata": {{"a": {DIGITS}}}}}', **JSON}, "Invalid JSON"),
    ("PATCH", HERE, {"json": {"metadata": {"a": "\0"}}}, f"metadata.a: {NUL}"),
    ("POST", "/threads/search", {"json": {"metadata": {"a": "\0"}}}, f"metadata.a: {NUL}"),
    ("POST", "/threads/search", {"json": {"offset": 2**63}}, "offset: Input should be less"),
    ("POST", "/runs", {"json": RUN | {"input": {"question": "\0"}}}, f"input.question: {NUL}"),
    ("POST", "/runs", {"json": RUN | {"checkpoint_id": "\0"}}, f"checkpoint_id: {NUL}"),
    ("POST", "/runs", {"json": RUN | {"stream_mode": [{}]}}, "stream_mode.0: Input should be"),
    ("POST", "/runs", {"json": RUN | {"input": {"messages": MESSAGE}}},
     "input.messages: Unexpected message type: 'zzz'"),
    ("POST", "/runs", {"json": RUN | {"command": {"update": {"messages": MESSAGE}}}},
     "command.update.messages: Unexpected message type"),
    ("POST", f"{HERE}/state", {"json": {"values": {"messages": MESSAGE}}},
     "values.messages: Unexpected message type"),
    ("GET", f"{HERE}/state/%00", {}, f"checkpoint: {NUL}"),
    ("GET", f"{HERE}/history?before=%00", {}, f"before: {NUL}"),
    ("GET", f"{HERE}/history?limit={DIGITS}", {}, "limit: Unable to parse"),
    ("GET", f"{HERE}/runs?status=%00", {}, f"status: {NUL}"),
    ("GET", f"{HERE}/runs?offset={2**63}", {}, "offset: Input should be less"),
    ("GET", f"{HERE}/runs?offset={DIGITS}", {}, "offset: Unable to parse"),
    ("GET", f"/assistants/crag/graph?xray={DIGITS}", {}, "xray.int: Unable to parse"),
]  # fmt: skip


async def test_what_cannot_be_stored_is_refused_with_its_field(serving: Serving) -> None:
    async with serving(graph=graph_that_says()) as client:
        await client.threads.create(thread_id=NO_THREAD, graph_id="crag")
        run = await client.runs.create(NO_THREAD, "crag", input={"messages": "Which?"})
        for method, path, sent, said in UNSTORABLE:
            told = await refused(client, method, path, **sent)
            status = 400 if said.startswith("values") else 422
            assert (told[0], told[1][: len(said)]) == (status, said), path
        for last in (DIGITS, "2147483648"):
            headers = {"Last-Event-ID": last}
            path = f"{HERE}/runs/{run['run_id']}/stream"
            assert (await client.http.client.get(path, headers=headers)).status_code == 200


async def test_a_wrong_request_is_told_what_is_wrong(serving: Serving) -> None:
    async with serving() as client:
        for method, path, sent, status, said in WRONG:
            told = await refused(client, method, path, **sent)
            assert (told[0], told[1][: len(said)]) == (status, said), path


async def test_a_second_run_of_a_thread_waits_or_is_refused_or_takes_its_place(
    serving: Serving,
) -> None:
    async with serving(holds) as client:
        thread = await new_thread(client)
        first = await client.runs.create(thread, "crag", input={"question": "wait"})
        path = f"/threads/{thread}/runs"
        run = f"{path}/{first['run_id']}"
        while (await client.runs.get(thread, first["run_id"]))["status"] == "pending":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        new = {"assistant_id": "crag", "input": {"question": "kettle"}}
        told = await refused(client, "POST", path, json={**new, "multitask_strategy": "reject"})
        assert (told[0], told[1][:33]) == (409, "Thread is already running a task.")
        assert await refused(client, "DELETE", run) == (
            409, "The run has not ended: cancel it first.",
        )  # fmt: skip
        assert await refused(client, "POST", f"{run}/cancel?action=stop") == (
            422, "action: Input should be 'interrupt' or 'rollback'",
        )  # fmt: skip
        assert await refused(client, "GET", f"{path}?limit=-1") == (
            422, "limit: Input should be greater than or equal to 1",
        )  # fmt: skip
        waiting = await client.runs.create(thread, "crag", input={"question": "wait too"})
        state: Any = await client.runs.wait(
            thread, "crag", input={"question": "kettle"}, multitask_strategy="interrupt"
        )
        assert state["answer"] == "KETTLE"
        found = {one["run_id"]: one["status"] for one in await client.runs.list(thread)}
        assert [found[one["run_id"]] for one in (first, waiting)] == ["interrupted"] * 2
        await client.runs.delete(thread, first["run_id"])
        assert len(await client.runs.list(thread)) == 2


async def test_a_run_that_is_rolled_back_leaves_nothing(serving: Serving) -> None:
    async with serving(holds, jobs=1) as client:
        thread = await new_thread(client)
        await client.runs.wait(thread, "crag", input={"question": "kettle"})
        running = await client.runs.create(thread, "crag", input={"question": "wait"})
        queued = await client.runs.create(thread, "crag", input={"question": "wait"})
        while (await client.runs.get(thread, running["run_id"]))["status"] == "pending":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await client.runs.cancel(thread, queued["run_id"], action="rollback")
        await client.runs.cancel(thread, running["run_id"], action="rollback", wait=True)
        assert [one["status"] for one in await client.runs.list(thread)] == ["success"]
        state = await client.threads.get_state(thread)
        assert state["values"] == {"question": "kettle", "answer": "KETTLE"}
        assert (await client.threads.get(thread))["status"] == "idle"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (SettingsError("k", 0, "1 or more"), "setting 'k' cannot be 0: 1 or more"),
        (OSError("/etc/secret: swordfish"), "An internal error occurred"),
    ],
)
async def test_a_client_is_told_its_own_mistakes_alone(
    serving: Serving, caplog: pytest.LogCaptureFixture, raised: Exception, told: str
) -> None:
    def fails(_: State) -> State:
        raise raised

    async with serving(fails) as client:
        reply = await client.http.post("/runs/wait", json={"assistant_id": "crag", "input": {}})
    assert reply["__error__"] == {"error": type(raised).__name__, "message": told}
    assert ("swordfish" in caplog.text) == isinstance(raised, OSError)


@pytest.mark.parametrize(
    "sent",
    [
        {"context": {"k": 3}},
        {"config": {"configurable": {"k": 3, "thread_id": "mine", "unknown": 1}}},
        {"config": {"configurable": {"k": 4}}, "context": {"k": 3}},
    ],
)
async def test_settings_are_taken_from_the_context_or_the_configuration(
    serving: Serving, sent: dict[str, Any]
) -> None:
    def tells(_: State, runtime: Runtime[Limits]) -> State:
        return {"answer": str(runtime.context)}

    built = StateGraph(State, Limits)
    built.add_node("tell", tells)
    built.add_edge(START, "tell")
    async with serving(graph=built.compile()) as client:
        body = {"assistant_id": "crag", "input": {}, **sent}
        assert await client.http.post("/runs/wait", json=body) == {"answer": "{'k': 3}"}


async def test_messages_grow_as_a_model_writes_them(serving: Serving) -> None:
    model = FakeChatModel(replies=["A kettle boils."])

    async def says(state: State) -> State:
        reply = await model.ainvoke([HumanMessage(state["question"])])
        return {"answer": str(reply.text)}

    async with serving(says) as client:
        asked = {"question": "What?"}
        limit: Any = {"recursion_limit": 2}
        stream = client.runs.stream(
            None, "crag", input=asked, stream_mode="messages", config=limit, context={"k": 3}
        )
        told = [(part.event, part.data) async for part in stream]
    events = [event for event, _ in told]
    assert events[:2] == ["metadata", "messages/metadata"]
    assert [data[0]["content"] for event, data in told if event == "messages/partial"][:3] == [
        "A", "A kettle", "A kettle boils.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("on_disconnect", "status"), [("cancel", "interrupted"), ("continue", "running")]
)
async def test_a_run_whose_client_leaves(serving: Serving, on_disconnect: str, status: str) -> None:
    async with serving(holds) as client:
        thread = await new_thread(client)
        asked = {"question": "wait"}
        sent = {"assistant_id": "crag", "input": asked, "on_disconnect": on_disconnect}
        messages: Any = [{"type": "http.request", "body": json.dumps(sent).encode()}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()  # type: ignore[no-any-return]
            while (found := await client.runs.list(thread)) == [] or (  # noqa: ASYNC110
                found[0]["status"] == "pending"
            ):
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

        replied: list[Any] = []

        async def send(message: Any) -> None:
            replied.append(message)

        scope = {
            "type": "http", "method": "POST", "path": f"/threads/{thread}/runs/wait",
            "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1")],
            "query_string": b"", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
            "scheme": "http", "root_path": "", "http_version": "1.1",
        }  # fmt: skip
        await client.http.client._transport.app(scope, receive, send)  # noqa: SLF001
        assert replied[0]["status"] == 499
        (run,) = await client.runs.list(thread)
        if status == "interrupted":
            await client.runs.join(thread, run["run_id"])
        assert (await client.runs.get(thread, run["run_id"]))["status"] == status


async def test_a_database_that_is_away_is_told_with_when_to_try_again(settings: Any) -> None:
    app = create(settings(), {}, Rules())
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        reply = await client.get("/ok")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
    assert reply.json() == {"detail": "The database does not answer: try again in a moment."}


async def test_a_stream_whose_client_leaves_ends_its_run_where_it_asked_for_it(
    serving: Serving,
) -> None:
    async with serving(holds) as client:
        thread = await new_thread(client)

        async def follow() -> None:
            asked: dict[str, Any] = {"input": {"question": "wait"}, "on_disconnect": "cancel"}
            async for _ in client.runs.stream(thread, "crag", **asked):
                pass

        following = asyncio.create_task(follow())
        while not (runs := await client.runs.list(thread)):  # noqa: ASYNC110 - in another task
            await asyncio.sleep(0.05)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        (run,) = runs
        await client.runs.join(thread, run["run_id"])
        assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"


async def test_a_run_that_takes_the_place_of_others_leaves_no_trace_of_them(
    serving: Serving,
) -> None:
    async with serving(holds) as client:
        thread = await new_thread(client)
        for _ in range(2):
            await client.runs.create(thread, "crag", input={"question": "wait"})
        new: dict[str, Any] = {"input": {"question": "kettle"}, "multitask_strategy": "rollback"}
        state: Any = await client.runs.wait(thread, "crag", **new)
        assert state["answer"] == "KETTLE"
        assert [run["status"] for run in await client.runs.list(thread)] == ["success"]


async def test_a_message_that_is_whole_is_streamed_once() -> None:
    graph = graph_that_says().copy({"checkpointer": InMemorySaver()})
    here: RunnableConfig = {"configurable": {"thread_id": "1"}}
    streamed = parts(graph, {}, here, {"stream_mode": ["messages"]})
    assert [event async for event, _ in streamed] == ["messages/metadata", "messages/complete"]
