"""Short form: one candidate for each passage, and the best answer wins (Self-RAG, Sec. 3.3).

decide ── no ──→ one candidate after [No Retrieval] ─────────────────────┐
└─ yes ─→ passages ─→ one candidate each, in one batch ─→ best, or ───┴─→ answer
largest sum (closed)
"""

from collections.abc import Sequence
from typing import NamedTuple

from crag.parts import Candidate, Passage, SegmentLimits
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import (
    AskCandidates,
    Asked,
    AskPassages,
    Judged,
    Offered,
    ReflectionOutcome,
    Steps,
)
from crag.reflection.retrieval_decision import Verdict, opening_verdict
from crag.reflection.rules import rules_of
from crag.reflection.scoring import critique_of, undesired_tokens
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import OPEN
from crag.state import Critique, Flag

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut", "constraint_fallback"})


class _Contender(NamedTuple):
    """A candidate, ready to be compared with the others."""

    critique: Critique
    tokens: int
    answer: str
    """The text after post-processing, by which answers to closed questions are compared."""
    dropped: list[str]
    """The undesired tokens among its critiques."""


def short_form(asked: Asked, settings: ReflectionSettings) -> Steps[ReflectionOutcome]:
    """Answer with the best of one candidate for each passage; ties go to the earlier passage.

    Without passages the answer is generated after ``[No Retrieval]``.
    """
    prefix = asked.prefix()
    verdict = yield from opening_verdict(asked, settings, short=True)
    choices = (verdict.choice(0, 0),)
    yield [Judged(choices, ())]
    offered, flags = Offered(), list[Flag]()
    places = yield from _places(asked, verdict, offered, flags)
    passages = tuple(offered[place] for place in places)
    limits = SegmentLimits(settings.max_segment_tokens, whole_answer=True)
    candidates: list[Candidate] = (yield [AskCandidates(prefix, passages, limits)])[0]
    entries = [
        _entry(candidate, offered.numbered(place), asked, settings)
        for candidate, place in zip(candidates, places, strict=True)
    ]
    running = _running(entries, settings)
    sums = _sums(running) if asked.closed else {}
    best = _best(running, sums)
    _explain(entries, running, best, sums)
    yield [Judged((), tuple(entry.critique.copy() for entry in entries))]
    cited, said = best.critique["passage"], best.critique["flags"]
    return ReflectionOutcome(
        answer=rules_of(settings).shown(best.answer),
        raw=best.critique["text"],
        passages=offered.records(),
        cited=[] if cited is None else [cited],
        score=sums.get(best.answer, best.critique["total"]),
        choices=list(choices),
        critiques=[entry.critique for entry in entries],
        flags=list(dict.fromkeys([*flags, *(flag for flag in said if flag in _OF_THE_ANSWER)])),
        tokens=sum(entry.tokens for entry in entries),
    )


def _places(
    asked: Asked, verdict: Verdict, offered: Offered, flags: list[Flag]
) -> Steps[Sequence[int | None]]:
    """Return the places of the passages to generate with, or one None if there are none."""
    if verdict.action == "no_retrieve":
        return [None]
    retrieved: Sequence[Passage] = (
        (yield [AskPassages(asked.query)])[0] if asked.passages is None else asked.passages
    )
    places = offered.add(retrieved)
    if len(places) < len(retrieved):
        flags.append("duplicate_passages")
    if not places:
        flags.append("no_passages")
    return places or [None]


def _entry(
    candidate: Candidate,
    passage: tuple[int, Passage] | None,
    asked: Asked,
    settings: ReflectionSettings,
) -> _Contender:
    rules, has_passage = rules_of(settings), passage is not None
    critique = critique_of(candidate, rules.scored(candidate, has_passage=has_passage), passage)
    if not cleaned(candidate.text):
        critique["flags"].append("empty")
    if candidate.ending == "length":
        critique["flags"].append("cut")
    if OPEN in candidate.text:
        critique["flags"].append("invented_passage")
    answer = rules.compared(candidate.text, asked, has_passage=has_passage)
    return _Contender(critique, candidate.tokens, answer, undesired_tokens(candidate, settings))


def _running(entries: Sequence[_Contender], settings: ReflectionSettings) -> list[_Contender]:
    """Leave out entries that hard constraints drop, and empty ones unless all are."""
    pool = list(entries)
    if settings.constraints == "hard":
        pool = [entry for entry in entries if not entry.dropped]
        if not pool:
            pool = list(entries)
            for entry in entries:
                entry.critique["flags"].append("constraint_fallback")
    if rules_of(settings).empty_answers_compete:
        return pool
    return [entry for entry in pool if "empty" not in entry.critique["flags"]] or pool


def _sums(entries: Sequence[_Contender]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for entry in entries:
        sums[entry.answer] = sums.get(entry.answer, 0.0) + entry.critique["total"]
    return sums


def _best(entries: Sequence[_Contender], sums: dict[str, float]) -> _Contender:
    """Return the first of the best; with sums, the best of the answer with the largest one."""
    if sums:
        winner = max(sums, key=sums.__getitem__)
        entries = [entry for entry in entries if entry.answer == winner]
    return max(entries, key=lambda entry: entry.critique["total"])


def _explain(
    entries: Sequence[_Contender],
    running: Sequence[_Contender],
    best: _Contender,
    sums: dict[str, float],
) -> None:
    for entry in entries:
        critique = entry.critique
        competes = any(entry is other for other in running)
        critique["chosen"] = entry is best or bool(
            sums and competes and entry.answer == best.answer
        )
        critique["kept"] = critique["chosen"]
        critique["why"] = _why(entry, best, sums, competes=competes)


def _why(entry: _Contender, best: _Contender, sums: dict[str, float], *, competes: bool) -> str:
    total, highest = entry.critique["total"], best.critique["total"]
    if not competes:
        said = f"it says {', '.join(entry.dropped)}"
        return "it is empty" if "empty" in entry.critique["flags"] else said
    if sums:
        relation = "the largest" if entry.answer == best.answer else "not the largest"
        return f"sum {sums[entry.answer]:.3f} of its answer is {relation}"
    if entry is best:
        return f"the best score, {total:.3f}"
    if total < highest:
        return f"score {total:.3f} is below {highest:.3f}"
    return "as good as an earlier passage"
