"""Short form: one candidate for each passage, and the best answer wins (Self-RAG, Sec. 3.3).

decide ── no ──→ one candidate after [No Retrieval] ─────────────────────┐
└─ yes ─→ passages ─→ one candidate each, in one batch ─→ best, or ───┴─→ answer
largest sum (closed)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crag.parts import Candidate, Passage, SegmentLimits, continuations
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import opening_choice
from crag.reflection.scoring import critique_of
from crag.state import Critique, Flag, Reflection

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut", "constraint_fallback"})


class _Contender(NamedTuple):
    """A candidate, ready to be compared with the others."""

    critique: Critique
    tokens: int
    answer: str
    """The text after post-processing, by which answers to closed questions are compared."""
    undesired: list[str]
    """The critiques for which hard constraints drop it."""


def short_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer with the best of one candidate for each passage; ties go to the earlier passage.

    Without passages the answer is generated after ``[No Retrieval]``.
    """
    settings, rules = driver.settings, driver.rules
    choice = opening_choice(asked, driver, short=True)
    offered, flags, places = Offered(), list[Flag](), list[int]()
    if choice["action"] != "no_retrieve":
        passages = driver.search(asked.query) if asked.passages is None else asked.passages
        places = offered.add(passages, flags)
    each = [offered.numbered(place) for place in places] or [None]
    shown = [passage[1] if passage else None for passage in each]
    limits = SegmentLimits(settings.max_new_tokens, whole_answer=True)
    candidates = driver.candidates(continuations(asked.prefix(), shown), limits)
    entries = [
        _contender(candidate, passage, asked, driver)
        for candidate, passage in zip(candidates, each, strict=True)
    ]
    competing = _competing(entries, driver)
    sums = _sums(competing) if asked.closed else {}
    best = _best(competing, sums)
    _explain(entries, competing, best, sums)
    cited = best.critique["passage"]
    flags += [flag for flag in best.critique["flags"] if flag in _OF_THE_ANSWER]
    return Reflection(
        choices=[choice], passages=offered.records, beam=None,
        critiques=[entry.critique for entry in entries],
        answer=rules.shown(best.answer, settings), raw=best.critique["text"],
        cited=[] if cited is None else [cited],
        score=sums.get(best.answer, best.critique["total"]),
        flags=sorted(set(flags), key=flags.index),  # pyright: ignore[reportArgumentType]
        tokens=sum(entry.tokens for entry in entries),
    )  # fmt: skip


def _contender(
    candidate: Candidate,
    passage: tuple[int, Passage] | None,
    asked: Asked,
    driver: Driver,
) -> _Contender:
    settings, rules, has_passage = driver.settings, driver.rules, passage is not None
    scored = rules.scored(candidate, settings, has_passage=has_passage)
    critique = critique_of(candidate, scored, passage)
    answer = rules.compared(candidate.text, asked, settings, has_passage=has_passage)
    return _Contender(critique, candidate.tokens, answer, rules.undesired(candidate, settings))


def _competing(entries: Sequence[_Contender], driver: Driver) -> Sequence[_Contender]:
    """Leave out entries that hard constraints drop, and empty ones, unless that leaves none."""
    pool = [entry for entry in entries if not entry.undesired]
    if not pool:
        pool = list(entries)
        for entry in entries:
            entry.critique["flags"].append("constraint_fallback")
    if driver.rules.empty_compete(driver.settings):
        return pool
    return [entry for entry in pool if "empty" not in entry.critique["flags"]] or pool


def _sums(entries: Sequence[_Contender]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for entry in entries:
        sums[entry.answer] = sums.get(entry.answer, 0.0) + entry.critique["total"]
    return sums


def _best(entries: Sequence[_Contender], sums: Mapping[str, float]) -> _Contender:
    """Return the first of the best; with sums, the best of the answer with the largest one."""
    if sums:
        winner = max(sums, key=sums.__getitem__)
        entries = [entry for entry in entries if entry.answer == winner]
    return max(entries, key=lambda entry: entry.critique["total"])


def _explain(
    entries: Sequence[_Contender],
    competing: Sequence[_Contender],
    best: _Contender,
    sums: Mapping[str, float],
) -> None:
    """Write into each critique whether it is chosen, and why."""
    for entry in entries:
        critique, says_same = entry.critique, entry.answer == best.answer
        is_chosen = entry is best or (bool(sums) and says_same and entry in competing)
        critique["chosen"] = critique["kept"] = is_chosen
        if entry not in competing:
            is_empty = "empty" in critique["flags"]
            critique["why"] = "it is empty" if is_empty else f"it says {', '.join(entry.undesired)}"
        elif sums:
            relation = "the largest" if says_same else "not the largest"
            critique["why"] = f"sum {sums[entry.answer]:.3f} of its answer is {relation}"
        elif entry is best:
            critique["why"] = f"the best score, {critique['total']:.3f}"
        elif critique["total"] < best.critique["total"]:
            below = f"{critique['total']:.3f} is below {best.critique['total']:.3f}"
            critique["why"] = f"score {below}"
        else:
            critique["why"] = "as good as an earlier passage"
