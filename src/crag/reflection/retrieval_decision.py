"""Whether to retrieve before a segment (Self-RAG, Sec. 3.3): for all forms."""

from crag.parts import Decision, Prefix
from crag.reflection.driver import Asked, Driver
from crag.reflection.scoring import argmax, retrieve_ratio
from crag.reflection_tokens import CONTINUE, RETRIEVAL
from crag.settings import ReflectionSettings
from crag.state import Choice, Ending, RetrievalAction


def opening_choice(asked: Asked, driver: Driver) -> Choice:
    """Return what was decided before the algorithm began, or decide before its first segment."""
    return asked.decided or first_choice(asked.prefix(), driver)


def first_choice(prefix: Prefix, driver: Driver) -> Choice:
    """Decide before the first segment."""
    settings = driver.settings
    if settings.retrieval_mode not in {"adaptive", "hard"}:
        return by_mode(settings)
    [decision] = driver.decide([prefix])
    if settings.retrieval_mode == "hard":
        action: RetrievalAction = "retrieve" if decision.emitted == RETRIEVAL else "no_retrieve"
        return chosen(action, f"emitted {decision.emitted!r}")
    return by_ratio(retrieve_ratio(decision.retrieve), settings)


def next_choice(
    decision: Decision | None, ending: Ending, settings: ReflectionSettings, *, can_continue: bool
) -> Choice:
    """Decide before a later segment; "continue" is possible if the last one had a passage.

    Without a `decision`, which only mode "adaptive" asks for, the mode decides; in mode "hard" the
    token that ended the last segment.
    """
    if decision is not None:
        if can_continue and argmax("retrieve", decision.retrieve) == CONTINUE:
            return chosen("continue", f"{CONTINUE} is the likeliest")
        return by_ratio(retrieve_ratio(decision.retrieve), settings)
    if settings.retrieval_mode != "hard":
        return by_mode(settings)
    follows = ending == "retrieve" or (ending == "continue" and can_continue)
    action: RetrievalAction = ending if follows else "no_retrieve"  # type: ignore[assignment]
    return chosen(action, f"the last segment ended with {ending!r}")


def by_mode(settings: ReflectionSettings) -> Choice:
    """Decide by mode "always" or "never"."""
    action: RetrievalAction = "retrieve" if settings.retrieval_mode == "always" else "no_retrieve"
    return chosen(action, f"mode {settings.retrieval_mode}")


def by_ratio(ratio: float, settings: ReflectionSettings) -> Choice:
    """Retrieve if the ratio is above the threshold `delta`."""
    is_above = ratio > settings.delta
    why = f"{ratio:.3f} is {'above' if is_above else 'not above'} {settings.delta:g}"
    return chosen("retrieve" if is_above else "no_retrieve", why)


def chosen(action: RetrievalAction, why: str) -> Choice:
    """Return the record of a choice before the first segment."""
    return Choice(segment=0, hypothesis=0, action=action, why=why)
