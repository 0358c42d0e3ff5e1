"""A circuit breaker: what fails again and again is left alone for a while.

pybreaker holds its lock for as long as the call takes, and circuitbreaker counts without one; the
evaluator is asked by many threads at once, and must be.
"""

import threading
import time
from collections.abc import Callable


class Circuit:
    """Opens after `failures` in a row, for `seconds`; then lets one call through to try again.

    Thread-safe. `clock` returns seconds.
    """

    def __init__(
        self,
        failures: int = 5,
        seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures, self.seconds = failures, seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._opened: float | None = None

    def wait(self) -> float:
        """Return the seconds to wait before a call; 0 if it may be made now.

        When the time is over, the first caller may try, and the others wait for as long again.
        """
        with self._lock:
            if self._opened is None:
                return 0.0
            left = self._opened + self.seconds - self._clock()
            if left > 0:
                return left
            self._opened = self._clock()
            return 0.0

    def succeeded(self) -> None:
        """Close the circuit, since a call succeeded."""
        with self._lock:
            self._failed, self._opened = 0, None

    def failed(self) -> bool:
        """Count a failure; return whether it opened the circuit."""
        with self._lock:
            self._failed += 1
            opens = self._failed >= self.failures and self._opened is None
            if self._failed >= self.failures:
                self._opened = self._clock()
            return opens
