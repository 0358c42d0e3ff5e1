import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from crag.errors import SettingsError
from crag.page.keeping import Pace, TooFastError, keeping, sweep
from crag.page.rules import Rules

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Threads:
    """Threads of a server, named by the days since their last change; `of` says whose they are."""

    def __init__(self, *days: int, busy: tuple[int, ...] = (), of: str = "") -> None:
        self.kept = {f"{of}{day}": day for day in days}
        self._busy, self._of = busy, of

    def __add__(self, other: "Threads") -> "Threads":
        both = Threads()
        both.kept = self.kept | other.kept
        both._busy = self._busy + other._busy
        return both

    async def search(self, *, limit: int, offset: int, **asked: Any) -> list[dict[str, Any]]:
        assert (asked["sort_by"], asked["sort_order"]) == ("updated_at", "desc")
        found = [
            {
                "thread_id": name,
                "updated_at": (NOW - timedelta(days=day)).isoformat(),
                "status": "busy" if day in self._busy else "idle",
                "metadata": {"owner": name.rstrip("0123456789")} if name[0].isalpha() else {},
            }
            for name, day in sorted(self.kept.items(), key=lambda item: item[1])
        ]
        return found[offset : offset + limit]

    async def delete(self, thread: str) -> None:
        del self.kept[thread]


@pytest.mark.parametrize(
    ("threads", "kept"),
    [
        (Threads(1, 2, 3), [1, 2, 3]),
        (Threads(1, 2, 3, 4, 5), [1, 2, 3]),
        (Threads(1, 9, 10, 11), [1, 9, 10]),
        (Threads(40, 1), [1]),
        (Threads(1, 2, 3, 4, 5, busy=(5,)), [1, 2, 3, 5]),
        (Threads(40, busy=(40,)), [40]),
        (Threads(), []),
        (Threads(5, 6, 7, of="ada") + Threads(1, 2, 3, 4, of="bob"), [1, 2, 3, 5, 6, 7]),
    ],
)
async def test_the_oldest_threads_of_the_same_user_go(threads: Threads, kept: list[int]) -> None:
    before = len(threads.kept)
    count = await sweep(threads, Rules(max_threads=3, thread_days=30), NOW)
    assert sorted(threads.kept.values()) == kept
    assert count == before - len(kept)


async def test_more_threads_than_one_page_are_counted() -> None:
    threads = Threads(*range(1, 2502))
    assert await sweep(threads, Rules(max_threads=2400, thread_days=10**5), NOW) == 101
    assert max(threads.kept.values()) == 2400


def test_a_user_makes_so_many_threads_a_minute_whatever_others_do() -> None:
    now = 0.0
    pace = Pace(2, lambda: now)
    for user in ("ada", "bob", "ada", "bob"):
        pace.take(user)
        now += 10
    with pytest.raises(TooFastError, match=r"2 threads within a minute.*THREADS_PER_MINUTE"):
        pace.take("ada")
    now = 61
    pace.take("ada")
    with pytest.raises(TooFastError):
        pace.take("bob")


@pytest.mark.parametrize("name", ["MAX_THREADS", "THREAD_DAYS", "THREADS_PER_MINUTE"])
def test_what_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"CRAG_SERVE_{name}", "none")
    with pytest.raises(SettingsError, match=f"CRAG_SERVE_{name}.*whole numbers from 1"):
        Rules()


async def test_a_sweep_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Threads):
        calls = 0

        async def search(self, **asked: Any) -> list[dict[str, Any]]:
            self.calls += 1
            if self.calls == 1:
                raise OSError("the server is away")
            return await super().search(**asked)

    threads = Away(1, 2, 3, 4)
    monkeypatch.setattr("crag.page.keeping._SECONDS", 0.01)
    monkeypatch.setattr("langgraph_sdk.get_client", lambda: SimpleNamespace(threads=threads))
    async with keeping(Rules(max_threads=3, thread_days=10**5))(None), asyncio.timeout(10):
        while len(threads.kept) > 3:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert sorted(threads.kept.values()) == [1, 2, 3]
    calls = threads.calls
    await asyncio.sleep(0.03)
    assert threads.calls == calls
