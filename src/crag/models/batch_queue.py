"""One queue in front of a model: callers at the same time share batches of like length.

There is no thread of its own. Of the callers that wait, one runs the next batch, for itself and the
others, so that a lone caller computes at once and in its own thread, and nothing has to be closed.
One with work for several cores starts a thread for each other core, which ends with that work.
"""

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

Row = TypeVar("Row")
Result = TypeVar("Result")

MOST_PADDING = 0.1
"""Most padding in a batch, as a share of its tokens: on a CPU a padding token costs as much as any
other."""
MOST_PADDING_TOKENS = 24
"""Most padding in a batch, in tokens: about what a batch of its own costs more."""
MOST_TOKENS = 512
"""Tokens of a batch, with padding; a longer text is a batch of its own. A token costs least between
200 and 600: above, the values of a layer leave the core's own cache."""
ABREAST = max(2, os.cpu_count() or 1)
"""Batches that run at the same time, if several callers wait."""
FEWEST_TOKENS = 256
"""Tokens of a batch up to which work is not divided among cores."""
_TURN = 64
"""Texts of one caller after which others come first: a question does not wait for a whole index."""


class Batch(NamedTuple, Generic[Result]):
    """What the model returned for some of a caller's rows."""

    indices: list[int]
    """Those of the rows among the caller's."""
    results: list[Result]
    """In the order of `indices`."""


class BatchQueue(Generic[Row, Result]):
    """Run the rows of all callers in batches of like length, a few at a time; thread-safe.

    `run` returns a result for each of its rows, and `length` how many tokens a row has. Callers are
    served in the order in which they came, after 64 texts in turns. What is computed for a lone
    caller does not depend on the queue; the batch of several changes a result as padding does, by
    rounding. For rows of more than one batch, up to `helpers` threads run batches beside those of
    the caller. If a batch of several callers fails, each one's rows run again alone, so that an
    error reaches only the caller whose rows cause it. A process that forks while others compute
    finds the queue empty.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Row]], Sequence[Result]],
        length: Callable[[Row], int],
        *,
        abreast: int = ABREAST,
        helpers: int = 0,
        name: str = "model",
    ) -> None:
        self.name = name
        self._run = run
        self._length = length
        self._abreast = abreast
        self._helpers = helpers
        self._waiting: list[_Caller[Row, Result]] = []
        self._running = 0
        self._changed = threading.Condition()
        _QUEUES.add(self)

    @property
    def callers(self) -> int:
        """How many callers wait or compute."""
        return len(self._waiting)

    def batches(self, rows: Sequence[Row], size: int) -> Iterator[Batch[Result]]:
        """Yield the results of `rows` as they are computed, in batches of at most `size` rows.

        A caller that stops iterating takes back what has not been computed.

        Raises:
            Exception: what `run` raises for these rows.
        """
        lengths = [self._length(row) for row in rows]
        order = sorted(range(len(rows)), key=lambda index: -lengths[index])
        caller = _Caller[Row, Result](rows, lengths, deque(order), size)
        with self._changed:
            self._waiting.append(caller)
        try:
            self._start_helpers(caller)
            while caller.awaited:
                if (batch := self._next(caller)) is not None:
                    caller.awaited -= len(batch.indices)
                    yield batch
        finally:
            with self._changed, suppress(ValueError):  # It is not there in a forked process.
                self._waiting.remove(caller)

    def _start_helpers(self, caller: "_Caller[Row, Result]") -> None:
        """Start as many threads as can compute for a caller beside it."""
        fewest_batches = -(-sum(caller.lengths) // self._most_tokens(caller))
        for _ in range(min(self._helpers, fewest_batches - 1)):
            with suppress(RuntimeError):  # The system, or an interpreter that ends, has no more.
                threading.Thread(target=self._help, args=(caller,), name=self.name).start()

    def _help(self, caller: "_Caller[Row, Result]") -> None:
        """Run batches while rows of a caller wait and there is a place free."""
        while True:
            with self._changed:
                is_done = caller not in self._waiting or not caller.pending
                if is_done or self._running >= self._abreast:
                    return
                self._running += 1
                shared = self._chosen()
            self._compute(shared)

    def _most_tokens(self, caller: "_Caller[Row, Result]") -> int:
        """Return the tokens of a batch: fewer where a lone caller has helpers to share with."""
        if not self._helpers or len(self._waiting) > 1:
            return MOST_TOKENS
        share = sum(caller.lengths) // (self._helpers + 1) + MOST_PADDING_TOKENS
        return min(MOST_TOKENS, max(FEWEST_TOKENS, share))

    def _next(self, caller: "_Caller[Row, Result]") -> Batch[Result] | None:
        """Return what is done for a caller, or run a batch that may be for others."""
        with self._changed:
            while not caller.done and not (caller.pending and self._running < self._abreast):
                self._changed.wait()
            if caller.done:
                batch = caller.done.popleft()
                if isinstance(batch, Exception):
                    raise batch
                return batch
            self._running += 1
            shared = self._chosen()
        self._compute(shared)
        return None

    def _compute(self, shared: "Sequence[_Share[Row, Result]]") -> None:
        """Run a batch in the place that was taken for it, and hand its results out."""
        try:
            outcomes = self._outcomes(shared)
        except BaseException:  # Such as an interrupt: others find their rows where they were.
            with self._changed:
                for part in shared:
                    part.caller.pending.extendleft(reversed(part.indices))
            raise
        else:
            with self._changed:
                for part, outcome in zip(shared, outcomes, strict=True):
                    part.caller.done.append(outcome)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _chosen(self) -> "list[_Share[Row, Result]]":
        """Take the longest rows of the first caller, and rows of others of similar length."""
        shared: list[_Share[Row, Result]] = []
        longest = count = tokens = 0
        most, most_tokens = self._waiting[0].size, self._most_tokens(self._waiting[0])
        for caller in self._waiting:
            taken: list[int] = []
            limit = min(most, caller.size)
            for index in caller.pending:
                length = caller.lengths[index]
                longest = longest or length
                if length > longest:
                    continue
                padded = (count + 1) * longest
                padding, is_full = padded - tokens - length, count >= limit or padded > most_tokens
                allowed = min(MOST_PADDING * (tokens + length), MOST_PADDING_TOKENS)
                if count and (is_full or padding > allowed):
                    break
                taken.append(index)
                count, tokens = count + 1, tokens + length
            if taken:
                most = limit
                shared.append(_Share(caller, taken))
        for part in shared:
            part.caller.take(part.indices)
        for caller in [waiting for waiting in self._waiting if waiting.taken >= _TURN]:
            caller.taken = 0
            self._waiting.remove(caller)
            self._waiting.append(caller)
        return shared

    def _outcomes(
        self, shared: "Sequence[_Share[Row, Result]]"
    ) -> "list[Batch[Result] | Exception]":
        rows = [row for part in shared for row in part.rows]
        for watch in _WATCHING:
            watch(self.name, len(rows))
        try:
            results = self._run(rows)
        except Exception as error:  # noqa: BLE001 - raised where it belongs
            if len(shared) == 1:
                return [error]
            return [outcome for part in shared for outcome in self._outcomes([part])]
        following = iter(results)
        return [Batch(part.indices, [next(following) for _ in part.indices]) for part in shared]

    def forget(self) -> None:
        """Empty the queue in a process that forked: the threads that would do so are not in it."""
        self._waiting, self._running = [], 0
        self._changed = threading.Condition()


class _Caller(Generic[Row, Result]):
    """A call of `BatchQueue.batches` that is not at its end."""

    def __init__(
        self, rows: Sequence[Row], lengths: Sequence[int], pending: deque[int], size: int
    ) -> None:
        self.rows = rows
        self.lengths = lengths
        self.pending = pending
        """Indices of the rows that no batch has taken, longest first."""
        self.size = size
        self.taken = 0
        """Rows that batches have taken since the caller came, or went to the back."""
        self.awaited = len(rows)
        """Rows whose results it has not received."""
        self.done: deque[Batch[Result] | Exception] = deque()

    def take(self, indices: Sequence[int]) -> None:
        taken = set(indices)
        self.pending = deque(index for index in self.pending if index not in taken)
        self.taken += len(indices)


class _Share(NamedTuple, Generic[Row, Result]):
    """The rows of one caller in a batch."""

    caller: _Caller[Row, Result]
    indices: list[int]

    @property
    def rows(self) -> list[Row]:
        return [self.caller.rows[index] for index in self.indices]


_QUEUES: WeakSet["BatchQueue[Any, Any]"] = WeakSet()
_WATCHING: list[Callable[[str, int], None]] = []


def watch_batches(watch: Callable[[str, int], None]) -> None:
    """Call `watch` from now on with a queue's name and the number of rows of each batch."""
    _WATCHING.append(watch)


def callers_waiting() -> Counter[str]:
    """Return how many callers wait or compute, by the name of the queue."""
    counts = Counter[str]()
    for queue in list(_QUEUES):
        counts[queue.name] += queue.callers
    return counts


def _forget_callers_of_the_parent() -> None:
    for queue in _QUEUES:
        queue.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_callers_of_the_parent)
