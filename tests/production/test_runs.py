"""The queue of runs in PostgreSQL: who is next, and what becomes of the lost and the late."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from crag.errors import GoneError
from crag.page.rules import Rules
from crag.server.database import Database
from crag.server.replies import RefusedRequestError
from crag.server.runs import Claim, Runs
from crag.server.settings import ServerSettings
from crag.server.threads import Threads
from tests.production.conftest import graph_that_answers

Make = Callable[..., Runs]


async def thread(runs: Runs, owner: str = "") -> UUID:
    found: UUID = (await Threads(runs.database, owner).create())["thread_id"]
    return found


async def queued(runs: Runs, at: UUID | None = None, owner: str = "", **changed: Any) -> UUID:
    """Queue a run on a thread, by default on a new one; return its id."""
    new: dict[str, Any] = {
        "thread_id": at or await thread(runs, owner), "owner": owner, "assistant_id": "a",
        "graph_id": "crag", "request": {"input": "\x00 and \ud800"}, "metadata": {},
        "strategy": "enqueue",
    }  # fmt: skip
    found: UUID = (await runs.create(**new | changed))["run_id"]
    return found


async def claimed(runs: Runs, worker: UUID | None = None) -> Claim:
    claim = await runs.claim(worker or uuid4())
    assert claim
    return claim


async def status(runs: Runs, run_id: UUID) -> str | None:
    return (await runs.after(run_id, 0))[0]


async def test_the_oldest_is_next_and_a_thread_runs_one_at_a_time(make_runs: Make) -> None:
    runs = make_runs()
    here = await thread(runs)
    first, second, other = await queued(runs, here), await queued(runs, here), await queued(runs)
    one = await claimed(runs)
    assert (one.run_id, one.attempt, one.request["input"]) == (first, 1, "\x00 and \ud800")
    assert (await claimed(runs)).run_id == other
    assert await runs.claim(uuid4()) is None
    await runs.finish(one, "success", "idle")
    assert (await claimed(runs)).run_id == second


async def test_processes_that_claim_at_once_get_different_runs(make_runs: Make) -> None:
    runs = make_runs()
    ids = {await queued(runs) for _ in range(8)}
    found = await asyncio.gather(*(claimed(runs) for _ in range(8)))
    assert {claim.run_id for claim in found} == ids


async def test_who_has_few_runs_is_served_before_who_has_many(make_runs: Make) -> None:
    runs = make_runs()
    for _ in range(3):
        await queued(runs, owner="many")
    few = await queued(runs, owner="few")
    await claimed(runs)
    assert (await claimed(runs)).run_id == few


async def test_a_run_whose_process_is_gone_is_taken_up_and_its_old_process_writes_no_more(
    make_runs: Make,
) -> None:
    runs = make_runs(lease_seconds=1.0)
    run = await queued(runs)
    lost = await claimed(runs)
    await runs.tidy()
    assert await runs.claim(uuid4()) is None
    await asyncio.sleep(1.1)
    await runs.tidy()
    again = await claimed(runs)
    assert (again.run_id, again.attempt) == (run, 2)
    with pytest.raises(GoneError):
        await runs.finish(lost, "success", "idle")
    with pytest.raises(GoneError):
        await runs.append(lost, [("values", "1")])
    assert await runs.renew(lost.worker, [lost]) == {}
    await runs.finish(again, "success", "idle")


async def test_what_an_attempt_lost_it_can_neither_write_nor_read(make_runs: Make) -> None:
    runs = make_runs()
    run, lost = await queued(runs), await claimed(runs)
    saved = runs.database.saving(graph_that_answers(), lost.fence)
    here: Any = {"configurable": {"thread_id": str(lost.thread_id)}}
    await saved.ainvoke({"question": "before"}, here)
    await runs.database.rows("UPDATE crag_runs SET lease = now() - interval '1s'")
    await runs.tidy()
    again = await claimed(runs)
    assert again.run_id == run
    for attempt in (saved.ainvoke({"question": "late"}, here), saved.aget_state(here)):
        with pytest.raises(GoneError):
            await attempt
    resumed = runs.database.saving(graph_that_answers(), again.fence)
    assert (await resumed.aget_state(here)).values["answer"] == "BEFORE"


async def test_a_thread_that_is_deleted_leaves_nothing_to_who_has_its_id_next(
    make_runs: Make,
) -> None:
    runs = make_runs()
    here = await thread(runs, "ada")
    await queued(runs, here, "ada")
    claim = await claimed(runs)
    place: Any = {"configurable": {"thread_id": str(here)}}
    saved = runs.database.saving(graph_that_answers(), claim.fence)
    await saved.ainvoke({"question": "secret"}, place)
    mine, other = (Threads(runs.database, name) for name in ("ada", "eve"))
    await mine.delete(here)
    await other.create(here)
    with pytest.raises(GoneError):
        await saved.ainvoke({"question": "secret"}, place)
    seen = runs.database.saving(graph_that_answers(), other.fence(here))
    assert (await seen.aget_state(place)).values == {}
    with pytest.raises(GoneError):
        await runs.database.saving(graph_that_answers(), mine.fence(here)).aget_state(place)
    with pytest.raises(GoneError):
        await mine.copy(here)


async def test_a_run_that_is_claimed_while_it_is_cancelled_is_cancelled_all_the_same(
    make_runs: Make,
) -> None:
    runs = make_runs()
    for action in ("interrupt", "rollback"):
        here = await thread(runs)
        run_id = await queued(runs, here)
        run = await runs.get("", here, run_id)
        async with runs.database.transaction() as connection:
            await connection.execute(
                "UPDATE crag_runs SET status = 'running', attempt = 1, worker = %s, "
                "lease = now() + interval '1 hour' WHERE run_id = %s",
                (uuid4(), run_id),
            )
            cancelling = asyncio.create_task(runs.cancel(run, action))
            while not await runs.database.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await cancelling
        (found,) = await runs.database.rows(
            "SELECT cancel, status FROM crag_runs WHERE run_id = %(run)s", run=run_id
        )
        assert found == {"cancel": action, "status": "running"}


async def test_a_cancelled_run_whose_process_is_lost_ends(make_runs: Make) -> None:
    runs = make_runs()
    here = await thread(runs)
    kept, removed = await queued(runs, here), await queued(runs)
    await claimed(runs), await claimed(runs)
    await runs.cancel(await runs.get("", here, kept), "interrupt")
    await runs.database.rows("UPDATE crag_runs SET lease = now() - interval '1s', "
                             "cancel = coalesce(cancel, 'rollback')")  # fmt: skip
    await runs.tidy()
    assert await status(runs, kept) == "interrupted"
    assert await status(runs, removed) is None
    assert (await Threads(runs.database, "").get(here))["status"] == "idle"


async def test_who_stands_still_with_a_lock_costs_no_other_process_its_runs(
    make_runs: Make,
) -> None:
    runs = make_runs()
    await queued(runs)
    claim = await claimed(runs)
    async with runs.database.transaction() as connection:
        await connection.execute("SELECT 1 FROM crag_runs FOR UPDATE")
        async with asyncio.timeout(2):
            assert await runs.renew(claim.worker, [claim]) == {claim: None}


@pytest.mark.parametrize(("keeps", "becomes"), [(True, "running"), (False, "pending")])
async def test_a_lease_ends_unless_it_is_renewed(
    make_runs: Make, *, keeps: bool, becomes: str
) -> None:
    runs = make_runs(lease_seconds=1.0)
    run, claim = await queued(runs), await claimed(runs)
    kept = [claim] if keeps else []
    for _ in range(3):
        await asyncio.sleep(0.5)
        assert await runs.renew(claim.worker, kept) == dict.fromkeys(kept)
        await runs.tidy()
    assert await status(runs, run) == becomes


async def test_after_too_many_attempts_the_run_ends_with_a_clear_error(make_runs: Make) -> None:
    runs = make_runs(lease_seconds=1.0, attempts=1)
    run = await queued(runs)
    await claimed(runs)
    await asyncio.sleep(1.1)
    await runs.tidy()
    found, parts = await runs.after(run, 0)
    assert found == "error"
    assert [part["event"] for part in parts] == ["error"]
    assert "its process was lost; ask again" in parts[0]["data"]


async def test_a_process_that_ends_gives_its_runs_back(make_runs: Make) -> None:
    runs = make_runs(attempts=1)
    run, claim = await queued(runs), await claimed(runs)
    await runs.release(claim.worker)
    again = await claimed(runs)
    assert (again.run_id, again.attempt) == (run, 1)


async def test_who_waits_too_long_is_told(make_runs: Make) -> None:
    runs = make_runs(queue_seconds=0.1)
    run = await queued(runs)
    await asyncio.sleep(0.2)
    await runs.tidy()
    found, parts = await runs.after(run, 0)
    assert found == "timeout"
    assert "no process was free" in parts[0]["data"]


async def test_a_run_behind_another_of_its_thread_waits_as_long_as_that_takes(
    make_runs: Make,
) -> None:
    runs = make_runs(queue_seconds=0.2)
    here = await thread(runs)
    await queued(runs, here)
    first = await claimed(runs)
    second = await queued(runs, here)
    await asyncio.sleep(0.3)
    await runs.tidy()
    assert await status(runs, second) == "pending"
    await runs.finish(first, "success", "idle")
    await runs.tidy()
    assert await status(runs, second) == "pending"
    await asyncio.sleep(0.3)
    await runs.tidy()
    assert await status(runs, second) == "timeout"


async def test_a_full_queue_and_a_greedy_user_are_refused_with_a_time_to_try_again(
    make_runs: Make,
) -> None:
    runs = make_runs(queue=3, per_user=2)
    for _ in range(2):
        await queued(runs, owner="ada")
    with pytest.raises(RefusedRequestError, match="2 unfinished runs, and 2 are allowed") as greedy:
        await queued(runs, owner="ada")
    assert (greedy.value.status_code, greedy.value.headers) == (429, {"Retry-After": "2"})
    await queued(runs, owner="bob")
    with pytest.raises(RefusedRequestError, match="3 runs are waiting") as full:
        await queued(runs, owner="eve")
    assert (full.value.status_code, full.value.headers) == (503, {"Retry-After": "2"})


async def test_the_thread_of_somebody_else_does_not_exist(make_runs: Make) -> None:
    runs = make_runs()
    here = await thread(runs, "ada")
    with pytest.raises(RefusedRequestError, match="Thread not found"):
        await queued(runs, here, owner="eve")
    with pytest.raises(RefusedRequestError, match="Thread not found"):
        await Threads(runs.database, "eve").delete(here)


async def test_parts_are_stored_in_order_whatever_they_hold(make_runs: Make) -> None:
    runs = make_runs()
    run, claim = await queued(runs), await claimed(runs)
    await runs.append(claim, [("values", '"\\u0000"'), ("updates", "2")])
    await runs.append(claim, [("values", "3")])
    _, parts = await runs.after(run, 1)
    assert [(part["place"], part["data"]) for part in parts] == [(2, "2"), (3, "3")]


async def test_no_statement_takes_longer_than_it_may(
    settings: Callable[..., ServerSettings],
) -> None:
    async with Database(settings(statement_seconds=0.2)).opened() as database:
        with pytest.raises(psycopg.errors.QueryCanceled):
            await database.rows("SELECT pg_sleep(30)")


async def test_old_streams_and_threads_of_one_run_are_removed(make_runs: Make) -> None:
    runs = make_runs(keep_seconds=0.1)
    kept, mine = await thread(runs), (await Threads(runs.database, "").create(temporary=True))
    ended, removed = await queued(runs, kept), await queued(runs, mine["thread_id"])
    for _ in range(2):
        claim = await claimed(runs)
        await runs.append(claim, [("values", "1")])
        await runs.finish(claim, "success", "idle")
    later = await queued(runs, kept)
    await runs.append(await claimed(runs), [("values", "1")])
    await asyncio.sleep(0.2)
    await runs.sweep()
    assert await runs.after(ended, 0) == ("success", [])
    assert await runs.after(removed, 0) == (None, [])
    assert len((await runs.after(later, 0))[1]) == 1
    assert (await Threads(runs.database, "").get(kept))["status"] == "busy"


async def test_threads_of_a_user_beyond_a_number_or_an_age_are_removed(make_runs: Make) -> None:
    runs = make_runs(Rules(max_threads=3, thread_days=30))
    of_ada = [await thread(runs, "ada") for _ in range(3)]
    old, *others = [await thread(runs) for _ in range(6)]
    await queued(runs, others[0])
    await runs.database.rows(
        "UPDATE crag_threads SET updated_at = now() - interval '31 days' "
        "WHERE thread_id = %(thread)s",
        thread=old,
    )
    await runs.sweep()
    left = await runs.database.rows("SELECT thread_id FROM crag_threads")
    assert {row["thread_id"] for row in left} == {others[0], *others[-2:], *of_ada}


async def test_a_user_makes_so_many_threads_a_minute_however(make_runs: Make) -> None:
    database = make_runs().database
    ada, bob = (Threads(database, name, most_per_minute=2) for name in ("key:ada", "key:bob"))
    first = (await ada.create())["thread_id"]
    await ada.create(temporary=True)
    await ada.copy(first)
    for more in (ada.create(), ada.copy(first)):
        with pytest.raises(RefusedRequestError, match="2 threads within a minute") as refused:
            await more
        assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "60"})
    await ada.create(temporary=True)
    await bob.create()
    nobody = Threads(database, "", most_per_minute=1)
    for _ in range(3):
        await nobody.create()
