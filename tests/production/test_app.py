"""The server in the process of the test: what survives a restart, and what clients are told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import psycopg
import pytest
from langgraph_sdk.errors import NotFoundError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier, Literal

from crag.page.rules import Rules
from tests.production.conftest import Serving, State
from tests.production.test_login import ADA, BOB, KEYS
from tests.telemetry.watching import Watched


async def new_thread(client: Any) -> str:
    return str((await client.threads.create(metadata={"of": "test"}))["thread_id"])


async def test_a_thread_that_waits_for_a_human_survives_a_restart(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        state: Any = await client.runs.wait(thread, "crag", input={"question": "Why?"})
        assert state["__interrupt__"][0]["value"] == {"asked": "Why?"}
    async with serving() as client:
        found = await client.threads.get(thread)
        assert (found["status"], found["metadata"]["of"]) == ("interrupted", "test")
        (asked,) = found["interrupts"].values()
        assert (asked, asked[0]["response_schema"]) == (state["__interrupt__"], None)
        state = await client.runs.wait(thread, "crag", command={"resume": "Because."})
        assert state["answer"] == "Because."
        assert (await client.threads.get(thread))["status"] == "idle"


async def test_a_run_that_a_process_gave_back_is_finished_by_the_next(serving: Serving) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def waits(_: State) -> State:
        begun.set()
        await never.wait()
        return {}

    async with serving(waits) as client:
        thread = await new_thread(client)
        run = await client.runs.create(thread, "crag", input={"question": "kettle"})
        await asyncio.wait_for(begun.wait(), 10)
    async with serving() as client:
        state: Any = await client.runs.join(thread, run["run_id"])
        assert state["answer"] == "KETTLE"
        assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"


async def test_a_stream_can_be_read_again_from_any_part(serving: Serving) -> None:
    async with serving() as client:
        thread = await new_thread(client)
        stream = client.runs.stream(
            thread, "crag", input={"question": "kettle"}, stream_mode=["updates", "values"]
        )
        parts = [(part.event, part.data) async for part in stream]
        assert [event for event, _ in parts] == ["metadata", "values", "updates", "values"]
        (run,) = await client.runs.list(thread)
        for last in range(3):
            again = client.runs.join_stream(thread, run["run_id"], last_event_id=str(last))
            assert [(part.event, part.data) async for part in again] == parts[last:]


async def test_what_is_made_for_one_run_is_no_thread_of_the_user(serving: Serving) -> None:
    async with serving() as client:
        state: Any = await client.runs.wait(None, "crag", input={"question": "kettle"})
        assert state["answer"] == "KETTLE"
        assert await client.threads.search() == []
        thread = await new_thread(client)
        await client.runs.wait(thread, "crag", input={"question": "kettle"})
        copy = await client.threads.copy(thread)
        assert copy["thread_id"] != thread
        await client.threads.delete(thread)
        with pytest.raises(NotFoundError):
            await client.threads.get(thread)
        state = await client.threads.get_state(copy["thread_id"])
        assert state["values"]["answer"] == "KETTLE"
        assert [found["thread_id"] for found in await client.threads.search()] == [
            copy["thread_id"]
        ]


async def test_a_run_that_takes_too_long_ends_and_says_so(serving: Serving) -> None:
    async def waits(_: State) -> State:
        await asyncio.Event().wait()
        return {}

    async with serving(waits, run_seconds=0.2) as client:
        with pytest.raises(Exception, match=r"took longer than 0\.2 seconds"):
            await client.runs.wait(None, "crag", input={"question": "kettle"})


async def swallows(state: State) -> State:
    """Go on when it is cancelled, once, as Python 3.11's wait_for can."""
    if "wait" not in state["question"]:
        return {"answer": state["question"].upper()}
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()
    return {}


async def test_a_run_that_swallows_its_cancellation_ends_all_the_same(serving: Serving) -> None:
    async with serving(swallows) as client, asyncio.timeout(20):
        for action in ("interrupt", "rollback"):
            thread = await new_thread(client)
            run = await client.runs.create(thread, "crag", input={"question": "wait"})
            while (await status(client, thread, run["run_id"])) != "running":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            state: Any = await client.runs.wait(
                thread, "crag", input={"question": "kettle"}, multitask_strategy=action
            )
            assert state["answer"] == "KETTLE"
        thread = await new_thread(client)
        run = await client.runs.create(thread, "crag", input={"question": "wait"})
        while (await status(client, thread, run["run_id"])) != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await client.runs.cancel(thread, run["run_id"], wait=True)
        assert await status(client, thread, run["run_id"]) == "interrupted"
    async with serving(swallows, run_seconds=0.2) as client, asyncio.timeout(20):
        with pytest.raises(Exception, match=r"took longer than 0\.2 seconds"):
            await client.runs.wait(None, "crag", input={"question": "wait"})


async def test_a_thread_that_is_deleted_stops_its_run(serving: Serving) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waits(_: State) -> State:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with serving(waits) as client, asyncio.timeout(10):
        thread = await new_thread(client)
        await client.runs.create(thread, "crag", input={"question": "kettle"})
        await begun.wait()
        await client.threads.delete(thread)
        await ended.wait()


async def test_who_has_the_id_of_a_deleted_thread_next_sees_nothing_of_it(
    serving: Serving,
) -> None:
    """The run of the deleted thread goes on, as what computes in a thread does."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def goes_on(state: State) -> State:
        if state["question"] == "secret":
            begun.set()
            while not go_on.is_set():
                with suppress(asyncio.CancelledError):
                    await go_on.wait()
        return {"answer": state["question"].upper()}

    # One run at a time: that of the next user begins when the old one has written all it will.
    async with serving(goes_on, rules=Rules(keys=KEYS), jobs=1) as client, asyncio.timeout(20):
        headers = client.http.client.headers
        headers["x-api-key"] = ADA
        thread = await new_thread(client)
        old = await client.runs.create(thread, "crag", input={"question": "secret"})
        await begun.wait()
        await client.threads.delete(thread)
        headers["x-api-key"] = BOB
        await client.threads.create(thread_id=thread)
        go_on.set()
        state: Any = await client.runs.wait(thread, "crag", input={"question": "kettle"})
        assert state == {"question": "kettle", "answer": "KETTLE"}
        seen = [await client.threads.get(thread), await client.threads.get_history(thread)]
        assert "secret" not in json.dumps(seen).lower()
        with pytest.raises(NotFoundError):
            await client.runs.get(thread, old["run_id"])


async def test_what_the_database_cannot_store_ends_the_run_at_once(serving: Serving) -> None:
    async with serving(lambda _: {"answer": "\0"}) as client:
        thread = await new_thread(client)
        async with asyncio.timeout(5):
            with pytest.raises(Exception, match=r"0x00|u0000"):
                await client.runs.wait(thread, "crag", input={"question": "kettle"})
        (run,) = await client.runs.list(thread)
        told: Any = run
        assert (told["status"], told["attempt"]) == ("error", 1)


async def test_without_a_free_process_the_client_is_told_when_to_try_again(
    serving: Serving,
) -> None:
    begun = asyncio.Event()

    async def waits(_: State) -> State:
        begun.set()
        await asyncio.Event().wait()
        return {}

    async with serving(waits, jobs=1, queue=1, queue_seconds=0.3) as client:
        await client.runs.create(await new_thread(client), "crag", input={})
        await asyncio.wait_for(begun.wait(), 10)
        with pytest.raises(httpx.HTTPStatusError) as told:
            await client.runs.wait(None, "crag", input={})
        reply = told.value.response
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "2")
        assert "no process was free" in reply.json()["detail"]


async def test_the_queue_is_measured(serving: Serving) -> None:
    told = Watched()
    async with serving(instruments=told.instruments, jobs=1) as client:
        for _ in range(2):
            await client.runs.wait(None, "crag", input={"question": "who"})
        while told.points("crag.runs.running") != [({}, 0)]:  # noqa: ASYNC110 - told once a while
            await asyncio.sleep(0.05)
    assert told.points("crag.queue.duration") == [({}, 2)]
    assert told.points("crag.queue.length") == [({}, 0)]


@pytest.mark.parametrize("seconds", [0.0, 1.5])
async def test_a_database_that_goes_away_loses_no_run(
    serving: Serving, database_url: str, seconds: float
) -> None:
    """A run that could not write is given up, and begun again after its lease has ended."""
    begun, attempts = asyncio.Event(), 0

    async def works(state: State) -> State:
        nonlocal attempts
        attempts += 1
        begun.set()
        await asyncio.sleep(2 * seconds if attempts == 1 else 0)  # Until it cannot write.
        return {"answer": state["question"].upper()}

    async with serving(works, lease_seconds=1) as client:
        thread = await new_thread(client)
        run = await client.runs.create(thread, "crag", input={"question": "kettle"})
        await asyncio.wait_for(begun.wait(), 10)
        async with away(database_url):
            await asyncio.sleep(seconds)
        async with asyncio.timeout(20):
            while (await status(client, thread, run["run_id"])) != "success":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        state: Any = await client.threads.get_state(thread)
        assert state["values"]["answer"] == "KETTLE"
        assert attempts <= 2


@asynccontextmanager
async def away(database_url: str) -> AsyncIterator[None]:
    """Let nobody connect to the database, and end all connections."""
    name = conninfo_to_dict(database_url)["dbname"]
    other = make_conninfo(database_url, dbname="template1")
    async with await psycopg.AsyncConnection.connect(other, autocommit=True) as connection:
        change = "ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}"
        await connection.execute(SQL(change).format(Identifier(name), Literal(False)))  # noqa: FBT003
        try:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            await connection.execute(ended, (name,))
            yield
        finally:
            await connection.execute(SQL(change).format(Identifier(name), Literal(True)))  # noqa: FBT003


async def status(client: Any, thread: str, run: str) -> str:
    """Return the status of a run, or why it cannot be told now."""
    try:
        return str((await client.runs.get(thread, run))["status"])
    except httpx.HTTPStatusError as error:
        return str(error.response.status_code)


async def test_what_this_server_has_not_is_told(serving: Serving) -> None:
    async with serving() as client:
        for way, path in (("GET", "/threads"), ("DELETE", "/info")):
            told = await client.http.client.request(way, path)
            assert told.status_code == 404
            assert told.json() == {"detail": "there is no such address on this server"}


async def test_without_the_database_a_client_is_told_to_come_back(
    serving: Serving, database_url: str
) -> None:
    async with serving() as client:
        async with away(database_url):
            told = await client.http.client.get("/ok")
        assert (told.status_code, told.headers["Retry-After"]) == (503, "5")
        assert "try again" in told.json()["detail"]
