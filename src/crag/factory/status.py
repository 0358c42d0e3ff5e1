"""The choice of one part, as `crag doctor` shows it."""

from typing import Literal, NamedTuple

State = Literal["ready", "missing", "broken", "blocked"]
"""Blocked: it might work, but a part that it needs is broken."""


class PartStatus(NamedTuple):
    """One part as `crag doctor` shows it."""

    part: str
    state: State
    in_use: str
    why: str
    todo: str
