"""Short form: one candidate for each passage, and the best answer wins (Self-RAG, Sec. 3.3).

decide ── no ──→ one candidate after [No Retrieval] ─────────────────────┐
└─ yes ─→ passages ─→ one candidate each, in one batch ─→ best, or ───┴─→ answer
largest sum (closed)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crag.parts import SegmentLimits, continuations
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import opening_choice
from crag.reflection.scoring import critique_of, objection
from crag.state import Critique, Flag, Reflection

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut", "constraint_fallback"})


class _Contender(NamedTuple):
    """A candidate, ready to be compared with the others."""

    critique: Critique
    answer: str
    """The text after post-processing, by which answers to closed questions are compared."""
    objection: str
    """The critique for which hard constraints drop it."""

    @property
    def total(self) -> float:
        return self.critique["total"]

    @property
    def is_empty(self) -> bool:
        return "empty" in self.critique["flags"]


def short_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer with the best of one candidate for each passage; ties go to the earlier passage.

    Without passages the answer is generated after ``[No Retrieval]``.
    """
    settings, rules = driver.settings, driver.rules
    choice = opening_choice(asked, driver, short=True)
    offered, flags, places = Offered(), list[Flag](), list[int | None]([None])
    if choice["action"] != "no_retrieve":
        passages = driver.search(asked.query) if asked.passages is None else asked.passages
        places = [*offered.add(passages)] or places
        if places == [None]:
            flags.append("no_passages")
    shown = [offered[place] for place in places]
    limits = SegmentLimits(settings.max_new_tokens, whole_answer=True)
    candidates = driver.candidates(continuations(asked.prefix(), shown), limits)
    entries: list[_Contender] = []
    for candidate, place in zip(candidates, places, strict=True):
        has_passage = place is not None
        scored = rules.scored(candidate, settings, has_passage=has_passage)
        answer = rules.compared(candidate.text, asked, settings, has_passage=has_passage)
        critique = critique_of(candidate, scored, offered.numbered(place))
        entries.append(_Contender(critique, answer, objection(candidate, settings)))
    competing = _competing(entries, driver)
    sums: dict[str, float] = {}
    for entry in competing if asked.closed else []:
        sums[entry.answer] = sums.get(entry.answer, 0.0) + entry.total
    winner = max(sums, key=sums.__getitem__, default=None)
    winning = [entry for entry in competing if winner in {None, entry.answer}]
    best = max(winning, key=lambda entry: entry.total)
    for entry in entries:
        is_chosen = entry is best or (bool(sums) and entry in winning)
        entry.critique["chosen"] = entry.critique["kept"] = is_chosen
        entry.critique["why"] = _why(entry, best, competing, sums)
    flags.extend(flag for flag in best.critique["flags"] if flag in _OF_THE_ANSWER)
    return Reflection(
        choices=[choice], passages=offered.records, beam=None,
        critiques=[entry.critique for entry in entries],
        answer=rules.shown(best.answer, settings), raw=best.critique["text"],
        cited=[place for place in [best.critique["passage"]] if place is not None],
        score=sums.get(best.answer, best.total), flags=flags,
        tokens=sum(candidate.tokens for candidate in candidates),
    )  # fmt: skip


def _competing(entries: Sequence[_Contender], driver: Driver) -> list[_Contender]:
    """Leave out entries that hard constraints drop, and empty ones, unless that leaves none."""
    pool = [entry for entry in entries if not entry.objection]
    if not pool:
        pool = list(entries)
        for entry in entries:
            entry.critique["flags"].append("constraint_fallback")
    if driver.rules.empty_compete(driver.settings):
        return pool
    return [entry for entry in pool if not entry.is_empty] or pool


def _why(
    entry: _Contender,
    best: _Contender,
    competing: Sequence[_Contender],
    sums: Mapping[str, float],
) -> str:
    if entry not in competing:
        return "it is empty" if entry.is_empty else f"it says {entry.objection}"
    if sums:
        relation = "the largest" if entry.answer == best.answer else "not the largest"
        return f"sum {sums[entry.answer]:.3f} of its answer is {relation}"
    if entry is best:
        return f"the best score, {entry.total:.3f}"
    if entry.total < best.total:
        return f"score {entry.total:.3f} is below {best.total:.3f}"
    return "as good as an earlier passage"
