"""Ask again: temporary failures only, a few times, after the wait that a server asks for."""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from crag.errors import CragError

_Result = TypeVar("_Result")


class Passing(Exception):  # noqa: N818 - a reason to ask again, which nobody else catches
    """A temporary failure: the `error`, and the seconds that the server asks to wait, if any."""

    def __init__(self, error: CragError, wait: float | None = None) -> None:
        self.error, self.wait = error, wait
        super().__init__(str(error))


def patiently(request: Callable[[], _Result], attempts: int, longest_wait: float) -> _Result:
    """Return what `request` returns, at the latest after so many attempts.

    Between two of them is the time that the server asks for; if that is longer than `longest_wait`,
    there is no further attempt. If it asks for none, the wait is random and grows.

    Raises:
        CragError: the last failure, or one that is not `Passing`.
    """
    attempt = 1
    while True:
        try:
            return request()
        except Passing as failure:
            grown = random.uniform(0, min(attempt, longest_wait))  # noqa: S311 - no secret
            wait = grown if failure.wait is None else failure.wait
            if attempt == attempts or wait > longest_wait:
                raise failure.error from failure
        time.sleep(wait)
        attempt += 1


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number or a date (RFC 9110)."""
    value = (header or "").strip()
    if value.isascii() and value.isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
        until = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
