"""Whether to retrieve before a segment (Self-RAG, Sec. 3.3): for all forms."""

from typing import NamedTuple

from crag.parts import Decision, Prefix
from crag.reflection.driver import AskDecision, Asked, Steps
from crag.reflection.rules import rules_of
from crag.reflection.scoring import argmax
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import CONTINUE, RETRIEVAL
from crag.state import Choice, Ending, Flag, RetrievalAction


class Verdict(NamedTuple):
    """What to do before a segment, and why."""

    action: RetrievalAction
    why: str
    ratio: float | None = None
    flags: tuple[Flag, ...] = ()
    decision: Decision | None = None

    def choice(self, segment: int, hypothesis: int) -> Choice:
        """Return it as plain JSON."""
        return Choice(
            segment=segment,
            hypothesis=hypothesis,
            action=self.action,
            ratio=self.ratio,
            emitted=self.decision.emitted if self.decision else "",
            probabilities=dict(self.decision.retrieve) if self.decision else {},
            why=self.why,
            flags=list(self.flags),
        )


def first_choice(instruction: str, settings: ReflectionSettings) -> Steps[Choice]:
    """Decide whether to retrieve before an algorithm runs, in a graph that retrieves by itself.

    The result goes into `Asked.decided`.
    """
    short = settings.form != "long"
    return (yield from _first_verdict(Prefix(instruction), settings, short=short)).choice(0, 0)


def opening_verdict(asked: Asked, settings: ReflectionSettings, *, short: bool) -> Steps[Verdict]:
    """Return what was decided before the algorithm began, or decide before its first segment."""
    decided = asked.decided
    if decided is None:
        return (yield from _first_verdict(asked.prefix(), settings, short=short))
    made = Decision(decided["probabilities"], decided["emitted"]) if decided["emitted"] else None
    flags = tuple(decided["flags"])
    return Verdict(decided["action"], decided["why"], decided["ratio"], flags, made)


def next_verdict(
    decision: Decision | None, ending: Ending, settings: ReflectionSettings, *, can_continue: bool
) -> Verdict:
    """Decide before a later segment; "continue" is possible if the last one had a passage.

    Without a `decision`, which only mode "adaptive" asks for, the mode decides; in mode "hard" the
    token that ended the last segment.
    """
    if decision is not None:
        if can_continue and argmax("retrieve", decision.retrieve) == CONTINUE:
            return Verdict("continue", f"{CONTINUE} is the likeliest", None, (), decision)
        return compared(decision, settings, *rules_of(settings).share(decision))
    if settings.retrieval_mode == "hard":
        return followed(ending, can_continue=can_continue)
    return _by_mode(settings)


def _first_verdict(prefix: Prefix, settings: ReflectionSettings, *, short: bool) -> Steps[Verdict]:
    """Decide before the first segment."""
    if settings.retrieval_mode not in ("adaptive", "hard"):
        return _by_mode(settings)
    decision: Decision = (yield [AskDecision(prefix)])[0]
    if settings.retrieval_mode == "hard":
        action: RetrievalAction = "retrieve" if decision.emitted == RETRIEVAL else "no_retrieve"
        return Verdict(action, f"emitted {decision.emitted!r}", None, (), decision)
    rules = rules_of(settings)
    why = "" if short else (yield from rules.objection(prefix))
    if why:
        return Verdict("no_retrieve", why, None, (), decision)
    return compared(decision, settings, *rules.share(decision, opens_short=short))


def _by_mode(settings: ReflectionSettings) -> Verdict:
    always = settings.retrieval_mode == "always"
    return Verdict("retrieve" if always else "no_retrieve", f"mode {settings.retrieval_mode}")


def followed(ending: Ending, *, can_continue: bool) -> Verdict:
    """Follow the Retrieve token that ended the last segment."""
    action: RetrievalAction = "no_retrieve"
    if ending == "retrieve" or (ending == "continue" and can_continue):
        action = ending
    return Verdict(action, f"the last segment ended with {ending!r}")


def compared(
    decision: Decision, settings: ReflectionSettings, ratio: float, flags: list[Flag]
) -> Verdict:
    """Retrieve if the ratio is above the threshold `delta`."""
    action: RetrievalAction = "retrieve" if ratio > settings.delta else "no_retrieve"
    relation = "above" if action == "retrieve" else "not above"
    why = f"{ratio:.3f} is {relation} {settings.delta:g}"
    return Verdict(action, why, ratio, tuple(flags), decision)
