"""Ask a human whether to search the web, and for what."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.types import interrupt
from typing_extensions import TypedDict

from crag.correction.action import branches
from crag.correction.queries import LONGEST, cut, without_operators
from crag.events import Event, event
from crag.plain import counted
from crag.settings import Settings
from crag.state import State, known_action

APPROVALS = frozenset({"approve", "approved", "yes", "y", "ok", "true"})
REFUSALS = frozenset({"refuse", "refused", "no", "n", "false"})
_FALLBACK = "continue without web knowledge"


class ConfirmSearchUpdate(TypedDict):
    """Written by `confirm_search`."""

    query: str
    refused: bool
    events: list[Event]


@dataclass(frozen=True)
class ConfirmSearch:
    """Interrupt before the search if `confirm_web` is set; otherwise do nothing.

    Resume the run with True or "approve", with False or "refuse", or with another query as
    ``{"query": "…"}``. Anything else counts as a refusal, so nothing leaves the machine without
    approval. The value of `confirm_web` that `open_run` read applies even if the run is resumed
    with other settings.
    """

    _: KW_ONLY
    searches: bool = True
    longest: int = LONGEST

    def run(self, state: State, settings: Settings) -> ConfirmSearchUpdate:
        """Ask, and write the decision."""
        query = state["query"]
        confirms = settings.confirm_web or state.get("confirms", False)
        if not (confirms and self.searches and settings.max_searches):
            return _approved(query)
        if not get_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER):
            detail = "nobody could be asked: confirm_web needs a checkpointer and a thread_id"
            return _refused(query, detail)
        return self._decided(query, interrupt(_request(state)))

    def _decided(self, query: str, given: Any) -> ConfirmSearchUpdate:
        answer = given
        if isinstance(answer, Mapping):
            edited = without_operators(str(answer.get("query") or ""))
            if edited:
                return _approved(cut(edited, self.longest))
            answer = answer.get("decision", answer.get("approve"))
        said = str(answer).strip().lower()
        if said in APPROVALS:
            return _approved(query)
        if said in REFUSALS:
            return _refused(query, "the web search was refused")
        known = 'true or "approve", false or "refuse", or {"query": "…"}'
        return _refused(query, f"{str(given)[:80]!r} is not a decision; resume with {known}")


def _approved(query: str) -> ConfirmSearchUpdate:
    return ConfirmSearchUpdate(query=query, refused=False, events=[])


def _refused(query: str, detail: str) -> ConfirmSearchUpdate:
    refusal: Event = event("search_refused", "confirm_search", detail, _FALLBACK)
    return ConfirmSearchUpdate(query=query, refused=True, events=[refusal])


def _request(state: State) -> dict[str, Any]:
    """Return what the human is shown."""
    return {
        "kind": "confirm_web",
        "question": state["question"],
        "query": state["query"],
        "reason": _reason(state),
        "resume_with": ["approve", "refuse", {"query": "another query"}],
    }


def _reason(state: State) -> str:
    scores, limits = state.get("scores") or [], state.get("thresholds")
    if not scores or limits is None:
        return "nothing was retrieved"
    best = f"the best of {counted(len(scores), 'document')} scores {max(scores):.2f}"
    action = known_action(state["action"])
    limit: Literal["upper", "lower"] = "upper" if "refine" in branches(action) else "lower"
    return f"{action.capitalize()}: {best}; the {limit} threshold is {limits[limit]:.2f}"
