"""Whether to retrieve before a segment (Self-RAG, Sec. 3.3): for all forms."""

from crag.parts import Decision, Prefix
from crag.reflection.driver import Asked, Driver
from crag.reflection.scoring import argmax
from crag.reflection_tokens import CONTINUE, RETRIEVAL
from crag.settings import ReflectionSettings
from crag.state import Choice, Ending, RetrievalAction


def opening_choice(asked: Asked, driver: Driver, *, short: bool) -> Choice:
    """Return what was decided before the algorithm began, or decide before its first segment."""
    return asked.decided or first_choice(asked.prefix(), driver, short=short)


def first_choice(prefix: Prefix, driver: Driver, *, short: bool) -> Choice:
    """Decide before the first segment; `short`: of an answer that is one segment."""
    settings, rules = driver.settings, driver.rules
    if settings.retrieval_mode not in {"adaptive", "hard"}:
        return by_mode(settings)
    decision = driver.decide([prefix])[0]
    if settings.retrieval_mode == "hard":
        action: RetrievalAction = "retrieve" if decision.emitted == RETRIEVAL else "no_retrieve"
        return chosen(action, f"emitted {decision.emitted!r}", decision)
    why = "" if short else rules.objection(prefix, driver)
    if why:
        return chosen("no_retrieve", why, decision)
    return compared(decision, settings, rules.share(decision, settings, opens_short=short))


def next_choice(
    decision: Decision | None, ending: Ending, driver: Driver, *, can_continue: bool
) -> Choice:
    """Decide before a later segment; "continue" is possible if the last one had a passage.

    Without a `decision`, which only mode "adaptive" asks for, the mode decides; in mode "hard" the
    token that ended the last segment.
    """
    settings = driver.settings
    if decision is not None:
        if can_continue and argmax("retrieve", decision.retrieve) == CONTINUE:
            return chosen("continue", f"{CONTINUE} is the likeliest", decision)
        return compared(decision, settings, driver.rules.share(decision, settings))
    if settings.retrieval_mode == "hard":
        return followed(ending, can_continue=can_continue)
    return by_mode(settings)


def by_mode(settings: ReflectionSettings) -> Choice:
    """Decide by mode "always" or "never"."""
    action: RetrievalAction = "retrieve" if settings.retrieval_mode == "always" else "no_retrieve"
    return chosen(action, f"mode {settings.retrieval_mode}")


def followed(ending: Ending, *, can_continue: bool) -> Choice:
    """Follow the Retrieve token that ended the last segment."""
    action: RetrievalAction = "no_retrieve"
    if ending == "retrieve" or (ending == "continue" and can_continue):
        action = ending
    return chosen(action, f"the last segment ended with {ending!r}")


def compared(decision: Decision, settings: ReflectionSettings, ratio: float) -> Choice:
    """Retrieve if the ratio is above the threshold `delta`."""
    is_above = ratio > settings.delta
    why = f"{ratio:.3f} is {'above' if is_above else 'not above'} {settings.delta:g}"
    choice = chosen("retrieve" if is_above else "no_retrieve", why, decision)
    return {**choice, "ratio": ratio}


def chosen(action: RetrievalAction, why: str, decision: Decision | None = None) -> Choice:
    """Return the record of a choice before the first segment."""
    emitted, shares = (decision.emitted, dict(decision.retrieve)) if decision else ("", {})
    return Choice(
        segment=0, hypothesis=0, action=action, ratio=None, emitted=emitted, probabilities=shares,
        why=why,
    )  # fmt: skip
