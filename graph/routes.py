"""Where a run goes next: pure functions of the state."""

from collections.abc import Hashable
from typing import Literal

from crag.state import State

Branch = Literal["refine", "web"]
BRANCHES: dict[Hashable, str] = {"refine": "refine", "web": "web"}
"""The path map, without which a drawing would lose the conditional edges."""


def by_action(state: State) -> list[Branch]:
    """Choose the branches for the action; Ambiguous takes both, in parallel (CRAG, Alg. 1)."""
    match state["action"]:
        case "correct":
            return ["refine"]
        case "incorrect":
            return ["web"]
        case "ambiguous":
            return ["refine", "web"]
