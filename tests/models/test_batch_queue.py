"""The queue in front of a model: shared batches, turns, errors, interrupts and forks."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.models.batch_queue import (
    FEWEST_TOKENS,
    MOST_PADDING,
    MOST_PADDING_TOKENS,
    MOST_TOKENS,
    BatchQueue,
)

LENGTHS = st.lists(st.integers(1, 300) | st.integers(1000, 1100), max_size=40)


class Model:
    """Return each length; record the batches; wait at the gate; fail at the `bad` length."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.threads: list[str] = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.stop: BaseException | None = None
        self.bad = 666

    def __call__(self, rows: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(rows))
        self.threads.append(threading.current_thread().name)
        self.entered.set()
        assert self.open.wait(timeout=60)
        if self.stop is not None:
            stop, self.stop = self.stop, None
            raise stop
        if self.bad in rows:
            message = f"{self.bad} cannot be read"
            raise ValueError(message)
        return rows


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def queue(model: Model) -> BatchQueue[int, int]:
    return BatchQueue(model, lambda length: length, abreast=1)


def results(queue: BatchQueue[int, int], rows: Sequence[int], size: int = 32) -> list[int]:
    """Return the results of `rows` in their order; each must come exactly once."""
    found: dict[int, int] = {}
    for batch in queue.batches(rows, size):
        assert not found.keys() & set(batch.indices)
        found.update(zip(batch.indices, batch.results, strict=True))
    return [found[index] for index in range(len(rows))]


@contextmanager
def held(queue: BatchQueue[int, int], model: Model) -> Iterator[ThreadPoolExecutor]:
    """Hold the model at the gate with a batch of its own; open the gate at the end."""
    model.open.clear()
    model.entered.clear()
    with ThreadPoolExecutor(24) as pool:
        try:
            first = pool.submit(results, queue, [7])
            assert model.entered.wait(timeout=60)
            yield pool
        finally:
            model.open.set()
    assert first.result() == [7]


def submitted(
    pool: ThreadPoolExecutor, queue: BatchQueue[int, int], *callers: Sequence[int]
) -> list["Future[list[int]]"]:
    """Let callers queue up in this order."""
    futures = []
    for rows in callers:
        before = queue.callers
        futures.append(pool.submit(results, queue, rows))
        while queue.callers == before:
            threading.Event().wait(0.001)
    return futures


@given(LENGTHS, st.integers(1, 7))
def test_a_lone_caller_has_bounded_batches_as_large_as_they_may_be(
    lengths: list[int], size: int
) -> None:
    model = Model()
    assert results(BatchQueue(model, lambda length: length), lengths, size) == lengths
    assert [one for batch in model.batches for one in batch] == sorted(lengths, reverse=True)
    assert all(fits(batch, size) for batch in model.batches)
    for batch, following in pairwise(model.batches):
        assert not fits([*batch, following[0]], size)
    assert set(model.threads) <= {threading.current_thread().name}


def fits(batch: list[int], size: int) -> bool:
    filled = len(batch) * max(batch)
    padding = filled - sum(batch)
    return len(batch) == 1 or (
        len(batch) <= size
        and filled <= MOST_TOKENS
        and padding <= min(MOST_PADDING * sum(batch), MOST_PADDING_TOKENS)
    )


@given(st.lists(st.tuples(LENGTHS, st.integers(1, 7)), min_size=1, max_size=8), st.integers(0, 2))
def test_callers_at_the_same_time_get_their_own_results(
    callers: list[tuple[list[int], int]], helpers: int
) -> None:
    model = Model()
    queue = BatchQueue[int, int](model, lambda length: length, helpers=helpers)
    with ThreadPoolExecutor(len(callers)) as pool:
        found = list(pool.map(lambda caller: results(queue, *caller), callers))
    assert found == [lengths for lengths, _ in callers]
    largest = max(size for _, size in callers)
    assert all(fits(batch, largest) for batch in model.batches)


def test_callers_share_batches_of_like_length(queue: BatchQueue[int, int], model: Model) -> None:
    with held(queue, model) as pool:
        futures = submitted(pool, queue, [100, 20], [98, 21, 300], [99])
    assert [future.result() for future in futures] == [[100, 20], [98, 21, 300], [99]]
    assert model.batches == [[7], [100, 98, 99], [20], [300], [21]]


def test_who_came_first_is_served_first(queue: BatchQueue[int, int], model: Model) -> None:
    with held(queue, model) as pool:
        submitted(pool, queue, [900, 10], [500], [9])
    assert model.batches[1:] == [[900], [10, 9], [500]]


def test_a_question_does_not_wait_for_a_whole_index(
    queue: BatchQueue[int, int], model: Model
) -> None:
    with held(queue, model) as pool:
        submitted(pool, queue, [1000] * 200, [500])
    assert 64 <= model.batches.index([500]) <= 66


def test_an_error_reaches_only_its_caller(queue: BatchQueue[int, int], model: Model) -> None:
    with held(queue, model) as pool:
        good, bad, other = submitted(pool, queue, [665, 30], [666, 31], [664])
    assert good.result() == [665, 30]
    assert other.result() == [664]
    with pytest.raises(ValueError, match="666 cannot be read"):
        bad.result()
    assert results(queue, [5]) == [5]


def test_an_error_of_a_shared_batch_reaches_only_its_caller(
    queue: BatchQueue[int, int], model: Model
) -> None:
    model.bad = 66
    with held(queue, model) as pool:
        bad, good, other = submitted(pool, queue, [66], [65], [64])
    assert (good.result(), other.result()) == ([65], [64])
    with pytest.raises(ValueError, match="66 cannot be read"):
        bad.result()
    shared, *alone = model.batches[1:]
    assert sorted(shared) == [64, 65, 66]
    assert sorted(alone) == [[64], [65], [66]]


def test_an_interrupted_caller_leaves_the_others_their_rows(
    queue: BatchQueue[int, int], model: Model
) -> None:
    model.open.clear()
    model.stop = KeyboardInterrupt()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(results, queue, [7])
        assert model.entered.wait(timeout=60)
        (second,) = submitted(pool, queue, [8, 9])
        model.open.set()
        assert second.result(timeout=60) == [8, 9]
    assert isinstance(first.exception(), KeyboardInterrupt)
    assert results(queue, [5]) == [5]


def test_who_stops_early_takes_back_the_rest(queue: BatchQueue[int, int], model: Model) -> None:
    batches = queue.batches([1000, 500, 100], 1)
    assert next(batches).indices == [0]
    batches.close()  # type: ignore[attr-defined]
    assert results(queue, [5]) == [5]
    assert model.batches == [[1000], [5]]


def test_no_thread_is_started(queue: BatchQueue[int, int]) -> None:
    before = threading.active_count()
    results(queue, [1, 2, 3])
    assert threading.active_count() == before


class Pair(Model):
    """Let no batch end before another one runs beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.together = threading.Barrier(2)

    def __call__(self, rows: Sequence[int]) -> Sequence[int]:
        self.together.wait(timeout=60)
        return super().__call__(rows)


def test_a_lone_caller_with_work_for_two_cores_has_both() -> None:
    model = Pair()
    queue = BatchQueue[int, int](model, lambda length: length, helpers=1, name="reader")
    assert results(queue, [200, 199, 198, 197]) == [200, 199, 198, 197]
    assert sorted(model.batches) == [[198, 197], [200, 199]]
    assert set(model.threads) == {threading.current_thread().name, "reader"}


@pytest.mark.parametrize("rows", [[FEWEST_TOKENS], [1] * FEWEST_TOKENS])
def test_little_work_is_not_divided(model: Model, rows: list[int]) -> None:
    queue = BatchQueue[int, int](model, lambda length: length, helpers=3)
    assert results(queue, rows, FEWEST_TOKENS) == rows
    assert model.batches == [rows]
    assert set(model.threads) == {threading.current_thread().name}


class HeldHelper(Model):
    """Hold the gate for helpers alone, which have the queue's name."""

    def __call__(self, rows: Sequence[int]) -> Sequence[int]:
        return super().__call__(rows) if threading.current_thread().name == "model" else rows


def test_a_helper_ends_when_its_caller_stops_early() -> None:
    model = HeldHelper()
    model.open.clear()
    queue = BatchQueue[int, int](model, lambda length: length, helpers=1)
    batches = queue.batches([1000] * 100, 1)
    next(batches)
    assert model.entered.wait(timeout=60)
    batches.close()  # type: ignore[attr-defined]
    model.open.set()
    for thread in threading.enumerate():
        if thread.name == "model":
            thread.join(timeout=60)
    assert model.batches == [[1000]]
    assert results(queue, [5]) == [5]


def test_an_error_of_a_helper_reaches_its_caller(model: Model) -> None:
    model.bad = 500
    queue = BatchQueue[int, int](model, lambda length: length, helpers=2)
    with pytest.raises(ValueError, match="500 cannot be read"):
        results(queue, [1000, 999, 500])


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_finds_an_empty_queue(queue: BatchQueue[int, int], model: Model) -> None:
    with held(queue, model) as pool:
        submitted(pool, queue, [3])
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            model.open.set()
            os._exit(0 if results(queue, [1, 2]) == [1, 2] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
