"""Routers: pure functions of the state and the settings."""

from collections.abc import Hashable
from typing import Literal

from crag.correction.action import branches
from crag.runtime.node_adapter import current_settings
from crag.state import State, is_follow_up, known_action, reflected
from crag.wording import civil_reply

BRANCHES: dict[Hashable, str] = {"correct, ambiguous": "refine", "incorrect, ambiguous": "web"}
"""The path map of `by_action`; drawings show its keys at the edges."""
CONFIRMATION: dict[Hashable, str] = {"confirm_web": "confirm_search", "otherwise": "search"}
"""The path map of `by_confirmation`."""
FORMS = {"short": "short_form", "long": "beam_step", "poster": "graded_loop"}
"""The node of each form of reflection."""


def by_history(state: State) -> Literal["nothing asked", "follow-up", "first question"]:
    """Make a question that follows other messages self-contained, unless that is switched off.

    What asks nothing, such as thanks, is not searched for. The papers' tasks take it as a question.
    """
    settings, follows = current_settings(), is_follow_up(state)
    if not settings.profile.benchmark and civil_reply(state["asked"], follows=follows):
        return "nothing asked"
    return "follow-up" if follows and settings.contextualize else "first question"


def by_choice(state: State) -> Literal["retrieve", "reflect"]:
    """Retrieve or answer directly, following the decision (Self-RAG, Alg. 1)."""
    return "retrieve" if reflected(state)["choices"][0]["action"] == "retrieve" else "reflect"


def by_knowledge(state: State) -> list[Literal["refine", "web", "prepare_passages"]]:
    """Choose the branches that supply knowledge to reflection.

    Routed: those of the action. Assembled and distributed: both, whatever the action (CRAG,
    Appendix B.2). The poster's rule takes the graded documents as they are.
    """
    settings = current_settings()
    if settings.form == "poster":
        return ["prepare_passages"]
    if settings.variant.self_crag_knowledge == "routed":
        return [*branches(known_action(state.get("action")))]
    return ["refine", "web"]


def by_form(state: State) -> str:
    """Choose the algorithm of `FORMS`; skip reflection if retrieval left nothing to read."""
    settings, choices = current_settings(), reflected(state).get("choices") or []
    retrieves = bool(choices) and choices[0]["action"] == "retrieve"
    if retrieves and not reflected(state).get("passages") and not settings.allow_own_knowledge:
        return "finish_reflection"
    return FORMS[settings.form]


def by_search(state: State) -> Literal["beam_step", "finish_reflection"]:
    """Repeat the round until the beam search is over; its depth is bounded."""
    return "beam_step" if reflected(state).get("beam") else "finish_reflection"


def by_action(state: State) -> list[Hashable]:
    """Choose the branches for the action; `BRANCHES` maps what is returned to nodes."""
    taken = branches(known_action(state.get("action")))
    return [condition for condition, node in BRANCHES.items() if node in taken]


def by_confirmation(state: State) -> Literal["confirm_web", "otherwise"]:  # noqa: ARG001 - a router's form
    """Ask a human before the search, if the settings say so."""
    return "confirm_web" if current_settings().confirm_web else "otherwise"
