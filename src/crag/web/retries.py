"""Retry a search: temporary failures only, a few times, after the wait the service asks for."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import ParamSpec, TypeVar

from tenacity import (
    RetryCallState,
    retry,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from crag.errors import SearchError, SearchProblem

ATTEMPTS = 3
"""Most requests for one search, as in the official code."""
LONGEST_WAIT = 8.0
"""Most seconds between two requests; there is no retry if the service asks for more."""
_SECONDS = re.compile(r"[0-9]{1,9}")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class PassingSearchError(SearchError):
    """A temporary failure; `wait` is the time in seconds that the service asked for, if any."""

    def __init__(
        self, provider: str, problem: SearchProblem, message: str, wait: float | None = None
    ) -> None:
        self.wait = wait
        hint = "" if wait is None else f" (the service asks to wait {wait:.0f} s)"
        super().__init__(provider, problem, message + hint)


def patiently(longest_wait: float) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that retries temporary failures, with backoff and jitter.

    It works on sync and async functions. There are at most `ATTEMPTS` requests and `longest_wait`
    seconds between two of them. If the service names a time to wait, that time is used; if it is
    longer, there is no retry.
    """
    jitter = wait_random_exponential(multiplier=0.5, max=longest_wait)

    def wait(state: RetryCallState) -> float:
        seconds = _requested_wait(state)
        return jitter(state) if seconds is None else seconds

    def too_long(state: RetryCallState) -> bool:
        return (_requested_wait(state) or 0.0) > longest_wait

    return retry(
        retry=retry_if_exception_type(PassingSearchError),
        stop=lambda state: stop_after_attempt(ATTEMPTS)(state) or too_long(state),
        wait=wait,
        reraise=True,
    )


def _requested_wait(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.wait if isinstance(error, PassingSearchError) else None


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number or a date (RFC 9110)."""
    value = (header or "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
        until = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
