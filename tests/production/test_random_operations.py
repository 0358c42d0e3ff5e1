"""Many clients at once do anything to the same few threads: what happens is what they asked for."""

import asyncio
import itertools
import operator
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import httpx
import psycopg
import pytest
from langgraph.graph import START, StateGraph
from langgraph_sdk.client import LangGraphClient

from tests.production.conftest import Serving
from tests.repeating import times

CLIENTS, THREADS = 8, 4
_PATIENCE = times(30, 30, 1800)
_STRATEGIES = ("enqueue", "enqueue", "enqueue", "enqueue", "interrupt", "rollback", "reject")
_REFUSED = {404, 409}
"""What an operation may be told: its thread or run is gone, or busy."""


class State(TypedDict, total=False):
    tag: str
    steps: Annotated[list[str], operator.add]


def two_steps() -> Any:
    """Return a graph that writes down both of its steps."""
    built = StateGraph(State)
    for before, name in ((START, "a"), ("a", "b")):
        built.add_node(name, _step(name))
        built.add_edge(before, name)
    return built.compile()


def _step(name: str) -> Callable[[State], Any]:
    async def step(state: State) -> State:
        await asyncio.sleep(0.01)
        return {"steps": [state["tag"] + name]}

    return step


@dataclass
class Asked:
    """A run, or what may have ended runs of a thread, and from when to when it was asked for."""

    kind: str
    thread: str
    began: int
    run: str | None = None
    tag: str = ""
    ended: float = float("inf")


@dataclass
class Model:
    """What was asked for; what must have become of each run follows from it."""

    asked: list[Asked] = field(default_factory=list)
    clock: Any = field(default_factory=itertools.count)

    def begin(self, kind: str, thread: str, run: str | None = None, tag: str = "") -> Asked:
        self.asked.append(Asked(kind, thread, next(self.clock), run, tag))
        return self.asked[-1]

    def runs(self) -> list[Asked]:
        return [one for one in self.asked if one.kind == "run" and one.run]

    def ends(self, run: Asked) -> set[str]:
        """Return the kinds of what may have ended a run, or taken it away."""
        return {
            one.kind
            for one in self.asked
            if one.kind != "run" and one.thread == run.thread and one.run in {None, run.run}
            and one is not run and one.ended > run.began
        }  # fmt: skip


class Clients:
    """Clients of two servers that share a database."""

    def __init__(self, servers: list[LangGraphClient], database_url: str, seed: int) -> None:
        self.servers, self.database_url = servers, database_url
        self.chance, self.model = random.Random(seed), Model()  # noqa: S311 - no secret
        self.threads: list[str] = []
        self.refused: Counter[int] = Counter()

    async def operate(self) -> None:
        client, chance = self.chance.choice(self.servers), self.chance
        thread, runs = chance.choice(self.threads), self.model.runs()
        kind = chance.choices(
            ("run", "cancel", "delete run", "delete", "lose", "read"), (40, 10, 2, 1, 15, 5)
        )[0]
        try:
            match kind:
                case "run":
                    await self._run(client, thread)
                case "cancel" if runs:
                    await self._cancel(client, chance.choice(runs))
                case "delete run" if runs:
                    run = chance.choice(runs)
                    await self._done(
                        self.model.begin(kind, run.thread, run.run),
                        client.runs.delete(run.thread, str(run.run)),
                    )
                case "delete":
                    deleted = self.model.begin(kind, thread)
                    await self._done(deleted, client.threads.delete(thread))
                    await client.threads.create(thread_id=thread, if_exists="do_nothing")
                case "lose":
                    await self._lose()
                case _:
                    await client.threads.get_state(thread)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in _REFUSED:
                raise
            self.refused[error.response.status_code] += 1

    async def _run(self, client: LangGraphClient, thread: str) -> None:
        strategy: Any = self.chance.choice(_STRATEGIES)
        made = self.model.begin("run", thread, tag=f"{next(self.model.clock)}")
        others = self.model.begin(strategy, thread)
        asked = {"tag": made.tag}
        run = await self._done(
            others, client.runs.create(thread, "crag", input=asked, multitask_strategy=strategy)
        )
        made.run = run["run_id"]

    async def _cancel(self, client: LangGraphClient, run: Asked) -> None:
        action: Any = self.chance.choice(("interrupt", "rollback"))
        cancelled = self.model.begin(action, run.thread, run.run)
        waits = self.chance.random() < 0.5
        await self._done(
            cancelled, client.runs.cancel(run.thread, str(run.run), action=action, wait=waits)
        )

    async def _done(self, asked: Asked, call: Any) -> Any:
        try:
            return await call
        finally:
            asked.ended = next(self.model.clock)

    async def _lose(self) -> None:
        """Let a lease end, as if its process stood still; it goes on all the same."""
        async with await psycopg.AsyncConnection.connect(
            self.database_url, autocommit=True
        ) as connection:
            await connection.execute(
                "UPDATE crag_runs SET lease = now() - interval '1 hour' WHERE run_id = ("
                "SELECT run_id FROM crag_runs WHERE status = 'running' ORDER BY random() LIMIT 1 "
                "FOR UPDATE SKIP LOCKED)"
            )

    async def check(self) -> None:
        """Compare what became of all runs with what was asked for."""
        client = self.servers[0]
        for thread in self.threads:
            async with asyncio.timeout(_PATIENCE):
                while (found := await client.threads.get(thread))["status"] == "busy":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert found["status"] in {"idle", "interrupted"}, found
            statuses = {
                run["run_id"]: run["status"] for run in await client.runs.list(thread, limit=1000)
            }
            values: Any = (await client.threads.get_state(thread))["values"]
            steps = values.get("steps", [])
            assert len(steps) == len(set(steps)), steps
            mine = [run for run in self.model.runs() if run.thread == thread]
            assert set(statuses) <= {str(run.run) for run in mine}
            for run in mine:
                self._check_run(run, statuses.get(str(run.run)), steps)

    def report(self) -> str:
        """Say what was done, and how requests were refused."""
        kinds = Counter(one.kind for one in self.model.asked)
        return f"{dict(kinds)}, refused {dict(self.refused)}; all as asked for"

    def _check_run(self, run: Asked, status: str | None, steps: list[str]) -> None:
        made = [step for step in steps if step[:-1] == run.tag]
        ends = self.model.ends(run)
        match status:
            case "success":
                assert made == [f"{run.tag}a", f"{run.tag}b"], (run, made)
            case "interrupted":
                assert "interrupt" in ends, run
                assert made == [f"{run.tag}a", f"{run.tag}b"][: len(made)]
            case None:
                assert ends & {"rollback", "delete", "delete run"}, run
                assert not made or "delete run" in ends, (run, made)
            case _:
                pytest.fail(f"{run}: {status}")


@pytest.mark.parametrize(
    "operations",
    [120, pytest.param(times(500, 500, 1000), marks=[pytest.mark.slow, pytest.mark.production])],
)
async def test_what_happens_is_what_was_asked_for(
    serving: Serving, database_url: str, operations: int
) -> None:
    limits = {"lease_seconds": 4, "attempts": 1000, "queue_seconds": 600, "connections": 8,
              "statement_seconds": 300}  # fmt: skip
    async with (
        serving(graph=two_steps(), **limits) as one,
        serving(graph=two_steps(), **limits) as other,
    ):
        clients = Clients([one, other], database_url, seed=operations)
        clients.threads = [(await one.threads.create())["thread_id"] for _ in range(THREADS)]
        left = iter(range(operations))

        async def operate() -> None:
            for _ in left:
                await clients.operate()

        await asyncio.gather(*(operate() for _ in range(CLIENTS)))
        await clients.check()
        print(f"\n{operations} random operations: {clients.report()}")  # noqa: T201
