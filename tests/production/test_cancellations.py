"""Runs are cancelled at random moments, in every way there is: each ends, and what follows too."""

import asyncio
import itertools
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.production.conftest import Serving, State, graph_that_answers
from tests.repeating import times

CLIENTS, PATIENCE = 8, times(60, 60, 1800)
WAYS = ("cancel", "cancel and wait", "run instead")


async def answers_in_a_while(state: State) -> State:
    """Take up to a tenth of a second; every third swallows its cancellation, and goes on.

    Python 3.11's `wait_for` can do that in any part of a run.
    """
    number = int(state["question"].split()[-1])
    with suppress(*[asyncio.CancelledError] if number % 3 == 0 else []):
        await asyncio.sleep(number % 10 / 100)
    await asyncio.sleep(0.01)
    return {"answer": state["question"].upper()}


class Cancelling:
    """Clients of two servers that share a database, each with a thread of its own each time."""

    def __init__(self, servers: list[LangGraphClient], seed: int) -> None:
        self.servers, self.ended = servers, Counter[str]()
        self.chance, self._numbers = random.Random(seed), itertools.count()  # noqa: S311 - no secret

    async def cancel_one(self) -> None:
        """Cancel a run; then one that follows it must answer."""
        chance, number = self.chance, next(self._numbers)
        client, other = chance.choice(self.servers), chance.choice(self.servers)
        thread = (await client.threads.create())["thread_id"]
        action: Any = chance.choice(("interrupt", "rollback"))
        way, asked = chance.choice(WAYS), {"question": f"first {number}"}
        run = (await client.runs.create(thread, "crag", input=asked))["run_id"]
        await asyncio.sleep(chance.uniform(0, 0.15))
        if way == "run instead":
            await self._answered(other, thread, multitask_strategy=action)
        else:
            await other.runs.cancel(thread, run, action=action, wait=way == "cancel and wait")
        ended = await self._end_of(client, thread, run)
        assert ended in {"success", "interrupted" if action == "interrupt" else "gone"}
        if way != "run instead":
            await self._answered(client, thread)
        history = await client.threads.get_history(thread, limit=100)
        known = {str((one["values"] or {}).get("question")) for one in history}  # type: ignore[union-attr]
        assert ended != "gone" or asked["question"] not in known
        self.ended[f"{action}: {ended}"] += 1

    async def _answered(self, client: LangGraphClient, thread: str, **how: Any) -> None:
        state: Any = await client.runs.wait(thread, "crag", input={"question": "then 1"}, **how)
        assert state["answer"] == "THEN 1"
        assert (await client.threads.get(thread))["status"] == "idle"

    async def _end_of(self, client: LangGraphClient, thread: str, run: str) -> str:
        """Wait until a run has ended; return its status, or that it is gone."""
        with suppress(NotFoundError):
            while (status := (await client.runs.get(thread, run))["status"]) in {  # noqa: ASYNC110
                "pending", "running",
            }:  # fmt: skip
                await asyncio.sleep(0.02)
            return str(status)
        return "gone"


NUMBERS = [24, pytest.param(times(200, 200, 600), marks=[pytest.mark.slow, pytest.mark.production])]


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_run_that_is_cancelled_ends_whenever_that_comes(
    serving: Serving, number: int
) -> None:
    limits = {"connections": 8, "queue_seconds": 600, "statement_seconds": 300}
    graph = graph_that_answers(answers_in_a_while)
    async with serving(graph=graph, **limits) as one, serving(graph=graph, **limits) as other:
        cancelling, left = Cancelling([one, other], seed=number), iter(range(number))

        async def cancel() -> None:
            for _ in left:
                async with asyncio.timeout(PATIENCE):
                    await cancelling.cancel_one()

        await asyncio.gather(*(cancel() for _ in range(CLIENTS)))
    assert cancelling.ended.total() == number
    print(f"\n{number} cancellations, none stuck: {dict(cancelling.ended)}")  # noqa: T201
