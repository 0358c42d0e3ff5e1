"""Whether to retrieve before a segment (Self-RAG, Sec. 3.3)."""

import math
from typing import NamedTuple

from crag.reflection.backend import Decision, Ending, Prefix
from crag.reflection.exchange import Decide, Steps
from crag.reflection.options import Options
from crag.reflection.records import Action, Choice, Flag
from crag.reflection.scoring import argmax, released_ratio, remap_ratio, retrieve_ratio
from crag.reflection.tokens import CONTINUE, RETRIEVAL

_FOLLOWED: dict[Ending, Action] = {
    "retrieve": "retrieve",
    "continue": "continue",
    "no_retrieve": "no_retrieve",
}


class Verdict(NamedTuple):
    """What to do before a segment."""

    action: Action
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
            ratio=None if self.ratio is None or math.isinf(self.ratio) else self.ratio,
            emitted=self.decision.emitted if self.decision else "",
            probabilities=dict(self.decision.retrieve) if self.decision else {},
            why=self.why,
            flags=list(self.flags),
        )


def needs_decision(options: Options) -> bool:
    """Say whether the mode looks at what the model says before the first segment."""
    return options.retrieval_mode in ("adaptive", "hard")


def first_verdict(decision: Decision | None, options: Options, *, short: bool) -> Verdict:
    """Decide before the first segment; `decision` is None where the mode alone decides.

    Only the short form knows the released ratio of log-probabilities.
    """
    if decision is None:
        action: Action = "retrieve" if options.retrieval_mode == "always" else "no_retrieve"
        return Verdict(action, f"mode {options.retrieval_mode}")
    if options.retrieval_mode == "hard":
        return _emitted(decision)
    if short and "released_ratio" in options.compat:
        _, flags = retrieve_ratio(decision.retrieve)
        return _compared(decision, options, released_ratio(decision.retrieve), flags)
    return _compared(decision, options, *retrieve_ratio(decision.retrieve))


def first_choice(instruction: str, options: Options) -> Steps[Choice]:
    """Decide whether to retrieve before anything is generated, for those who retrieve themselves.

    What it returns goes into `Asked.decided`.
    """
    asks = needs_decision(options)
    decision = (yield [Decide(Prefix(instruction))])[0] if asks else None
    return first_verdict(decision, options, short=options.form != "long").choice(0, 0)


def opening_verdict(
    decided: Choice | None, decision: Decision | None, options: Options, *, short: bool
) -> Verdict:
    """Return what was decided before the algorithm began, or decide as `first_verdict` does."""
    if decided is None:
        return first_verdict(decision, options, short=short)
    made = Decision(decided["probabilities"], decided["emitted"]) if decided["emitted"] else None
    flags = tuple(decided["flags"])
    return Verdict(decided["action"], decided["why"], decided["ratio"], flags, made)


def needs_next_decision(ending: Ending, options: Options) -> bool:
    """Say whether the same holds before a later segment, after one with this ending."""
    if "released_search" in options.compat:
        return ending != "retrieve" and "released_remap" in options.compat
    return options.retrieval_mode == "adaptive"


def next_verdict(
    decision: Decision | None, ending: Ending, options: Options, *, can_continue: bool
) -> Verdict | None:
    """Decide before a later segment; it can continue if the last one had a passage.

    None: there is none, as in the released search where no ``[Retrieval]`` follows.
    """
    if "released_search" in options.compat:
        if decision is None:
            return _followed(ending, can_continue=False) if ending == "retrieve" else None
        verdict = _next(decision, options, can_continue=False)
        return verdict if verdict.action == "retrieve" else None
    if decision is not None:
        return _next(decision, options, can_continue=can_continue)
    if options.retrieval_mode == "hard":
        return _followed(ending, can_continue=can_continue)
    return first_verdict(None, options, short=False)


def _next(decision: Decision, options: Options, *, can_continue: bool) -> Verdict:
    if "released_remap" in options.compat:
        _, flags = retrieve_ratio(decision.retrieve)
        return _compared(decision, options, remap_ratio(decision.retrieve), flags)
    if can_continue and argmax("retrieve", decision.retrieve) == CONTINUE:
        return Verdict("continue", f"{CONTINUE} is the likeliest", None, (), decision)
    return _compared(decision, options, *retrieve_ratio(decision.retrieve))


def _followed(ending: Ending, *, can_continue: bool) -> Verdict:
    """Follow the Retrieve token that ended the last segment."""
    action = _FOLLOWED.get(ending, "no_retrieve")
    if action == "continue" and not can_continue:
        action = "no_retrieve"
    return Verdict(action, f"the last segment ended with {ending!r}")


def _emitted(decision: Decision) -> Verdict:
    action: Action = "retrieve" if decision.emitted == RETRIEVAL else "no_retrieve"
    return Verdict(action, f"emitted {decision.emitted!r}", None, (), decision)


def _compared(decision: Decision, options: Options, ratio: float, flags: list[Flag]) -> Verdict:
    action: Action = "retrieve" if ratio > options.delta else "no_retrieve"
    relation = "above" if action == "retrieve" else "not above"
    why = f"{ratio:.3f} is {relation} {options.delta:g}"
    return Verdict(action, why, ratio, tuple(flags), decision)
