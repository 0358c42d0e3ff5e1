import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from crag.errors import SettingsError
from crag.page.guard import Rules
from crag.page.keeping import keeping, sweep

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Threads:
    """Threads of a server, named by the days since their last change."""

    def __init__(self, *days: int, busy: tuple[int, ...] = ()) -> None:
        self.kept = {str(day): day for day in days}
        self._busy = busy

    async def count(self) -> int:
        return len(self.kept)

    async def search(self, **asked: Any) -> list[dict[str, Any]]:
        assert (asked["sort_by"], asked["sort_order"]) == ("updated_at", "asc")
        return [
            {
                "thread_id": name,
                "updated_at": (NOW - timedelta(days=day)).isoformat(),
                "status": "busy" if day in self._busy else "idle",
            }
            for name, day in sorted(self.kept.items(), key=lambda item: -item[1])
        ]

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
    ],
)
async def test_the_oldest_threads_go(threads: Threads, kept: list[int]) -> None:
    before = len(threads.kept)
    count = await sweep(threads, Rules(max_threads=3, thread_days=30), NOW)
    assert sorted(threads.kept.values()) == kept
    assert count == before - len(kept)


@pytest.mark.parametrize("name", ["MAX_THREADS", "THREAD_DAYS"])
def test_what_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"CRAG_SERVE_{name}", "none")
    with pytest.raises(SettingsError, match=f"CRAG_SERVE_{name}.*whole numbers from 1"):
        Rules()


async def test_a_sweep_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Threads):
        calls = 0

        async def count(self) -> int:
            self.calls += 1
            if self.calls == 1:
                raise OSError("the server is away")
            return await super().count()

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
