"""Ask a human whether to search the web, and for what."""

from collections.abc import Mapping
from typing import Literal

from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.types import Command, interrupt

from crag.correction.queries import without_operators
from crag.events import event
from crag.settings import Settings
from crag.state import State

_FALLBACK = "continue without web knowledge"


Decision = Command[Literal["search", "select"]]


def confirm_search(state: State, settings: Settings) -> Decision:  # noqa: ARG001 - a node's form
    """Interrupt before the search, for a human to decide; the graph comes here if `confirm_web`.

    Resume the run with True or "approve", with False or "refuse", or with another query as
    ``{"query": "…"}``. Anything else counts as a refusal, so nothing leaves the machine without
    approval, whatever the settings of the call that resumes.
    """
    if not get_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER):
        return _refused("nobody could be asked: confirm_web needs a checkpointer and a thread_id")
    given = interrupt({
        "kind": "confirm_web", "question": state["question"], "query": state["query"],
        "resume_with": ["approve", "refuse", {"query": "another query"}],
    })  # fmt: skip
    query = given.get("query") if isinstance(given, Mapping) else None
    if edited := without_operators(str(query or "")):
        return Command(goto="search", update={"query": edited})
    if str(given).strip().lower() in {"approve", "yes", "true"}:
        return Command(goto="search")
    known = 'true, "approve" or {"query": "…"}'
    return _refused(f"the web search was refused by {str(given)[:80]!r}; {known} approves it")


def _refused(detail: str) -> Decision:
    refusal = event("search_refused", "confirm_search", detail, _FALLBACK)
    return Command(goto="select", update={"events": [refusal]})
