"""The budget of a whole run, and what it has spent."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields

from crag.errors import CragError, SettingsError

_PRICES = 2
"""In and out."""


class BudgetSpentError(CragError):
    """A limit of the budget is reached; no more calls are made."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of one run; None: no limit.

    Calls are exact. Tokens, cost and seconds are checked before each call and each row, so work in
    progress may exceed them.

    Raises:
        SettingsError: a limit is below 0, or a cost is limited without prices.
    """

    calls: int | None = None
    """Calls of chat models; searches are not counted."""
    tokens: int | None = None
    """Input and output tokens together."""
    cost: float | None = None
    seconds: float | None = None
    prices: tuple[float, float] | None = None
    """Price of a million input tokens, and of a million output tokens."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and value < 0:
                raise SettingsError(f"max-{field.name}", value, "it must be at least 0")
        if self.cost is not None and self.prices is None:
            raise SettingsError("max-cost", self.cost, "also give the prices: --prices IN,OUT")

    def priced(self, usage: Mapping[str, int]) -> float | None:
        """Return what tokens cost; None without prices."""
        if self.prices is None:
            return None
        sums = zip(self.prices, ("input_tokens", "output_tokens"), strict=True)
        return sum(price * usage.get(name, 0) for price, name in sums) / 1e6


def prices_from_text(text: str | None) -> tuple[float, float] | None:
    """Read prices as ``IN,OUT``, each for a million tokens.

    Raises:
        SettingsError: these are not two numbers of at least 0.
    """
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != _PRICES or not all(number >= 0 for number in numbers):
        raise SettingsError("prices", text, "give two numbers of at least 0, such as 0.15,0.60")
    return numbers[0], numbers[1]


class Meter:
    """Counts what a run spends and says when its budget is spent; thread-safe."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self.calls = 0
        self.tokens = {"input_tokens": 0, "output_tokens": 0}

    @property
    def seconds(self) -> float:
        """Seconds since the meter was created."""
        return time.monotonic() - self._start

    @property
    def cost(self) -> float | None:
        """Cost of the tokens spent so far; None without prices."""
        return self.budget.priced(self.tokens)

    def reached(self) -> str:
        """Return the limit that is reached; empty if none is."""
        spent = {
            "calls": self.calls,
            "tokens": sum(self.tokens.values()),
            "cost": self.cost or 0.0,
            "seconds": self.seconds,
        }
        for name, value in spent.items():
            limit = getattr(self.budget, name)
            if limit is not None and value >= limit:
                return f"max-{name} is {limit:g}"
        return ""

    def counted_call(self) -> str:
        """Count a call before it is made, or return the limit that is reached."""
        with self._lock:
            reached = self.reached()
            self.calls += not reached
        return reached

    def spend(self, usage: Mapping[str, int]) -> None:
        """Count tokens, after the call."""
        with self._lock:
            for name in self.tokens:
                self.tokens[name] += usage.get(name, 0)
