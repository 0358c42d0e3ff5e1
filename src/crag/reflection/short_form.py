"""Short form: one candidate for each passage, and the best answer wins (Self-RAG, Sec. 3.3).

decide ── no ──→ one candidate after [No Retrieval] ─────────────────────┐
└─ yes ─→ passages ─→ one candidate each, in one batch ─→ best, or ───┴─→ answer
largest sum (closed)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crag.reflection.backend import Candidate, Passage, SegmentLimits
from crag.reflection.cleaning import cleaned, released_answer, released_lead, short_answer
from crag.reflection.critiques import Offered, critique_of
from crag.reflection.deciding import Verdict, needs_decision, opening_verdict
from crag.reflection.exchange import Asked, Decide, Generate, Judged, Retrieve, Steps
from crag.reflection.options import Options
from crag.reflection.records import Critique, Flag, Outcome
from crag.reflection.scoring import short_form_score, undesired_tokens
from crag.reflection.tokens import OPEN

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut", "constraint_fallback"})


class _Entry(NamedTuple):
    """A candidate in the competition."""

    critique: Critique
    tokens: int
    answer: str
    """What identical answers have in common."""
    dropped: list[str]
    """The undesired tokens it said of itself."""


def short_form(asked: Asked, options: Options) -> Steps[Outcome]:
    """Answer with the best of one candidate for each passage; ties go to the earlier passage.

    Without passages the answer is generated after ``[No Retrieval]``.
    """
    prefix = asked.prefix()
    asks = asked.decided is None and needs_decision(options)
    decision = (yield [Decide(prefix)])[0] if asks else None
    verdict = opening_verdict(asked.decided, decision, options, short=True)
    choices = (verdict.choice(0, 0),)
    yield [Judged(choices, ())]
    offered, flags = Offered(), list[Flag]()
    places = yield from _places(asked, verdict, offered, flags)
    passages = tuple(offered[place] for place in places)
    limits = SegmentLimits(options.max_segment_tokens, whole_answer=True)
    candidates: list[Candidate] = (yield [Generate(prefix, passages, limits)])[0]
    entries = [
        _entry(candidate, offered.numbered(place), asked, options)
        for candidate, place in zip(candidates, places, strict=True)
    ]
    outcome = _outcome(entries, asked, options)
    outcome["choices"] = list(choices)
    outcome["passages"] = offered.records()
    outcome["flags"] = list(dict.fromkeys([*flags, *outcome["flags"]]))
    yield [Judged((), tuple(critique.copy() for critique in outcome["critiques"]))]
    return outcome


def _places(
    asked: Asked, verdict: Verdict, offered: Offered, flags: list[Flag]
) -> Steps[Sequence[int | None]]:
    """Return the places of the passages to generate with; one None for none."""
    if verdict.action == "no_retrieve":
        return [None]
    found: Sequence[Passage] | None = asked.passages
    if found is None:
        found = (yield [Retrieve(asked.query)])[0]
    places = offered.add(found or ())
    if len(places) < len(found or ()):
        flags.append("duplicate_passages")
    if not places:
        flags.append("no_passages")
    return places or [None]


def _entry(
    candidate: Candidate, passage: tuple[int, Passage] | None, asked: Asked, options: Options
) -> _Entry:
    scored = short_form_score(candidate, options, has_passage=passage is not None)
    critique = critique_of(candidate, scored, passage)
    if not cleaned(candidate.text):
        critique["flags"].append("empty")
    if candidate.ending == "length":
        critique["flags"].append("cut")
    if OPEN in candidate.text:
        critique["flags"].append("invented_passage")
    answer = _identity(asked, options)(candidate.text)
    return _Entry(critique, candidate.tokens, answer, undesired_tokens(candidate, options))


def _identity(asked: Asked, options: Options) -> Callable[[str], str]:
    """Return the post-processing after which closed answers are compared."""
    if "released_text" not in options.compat:
        return short_answer
    # Answers to open questions keep their tokens there.
    return released_answer if asked.closed else str


def _outcome(entries: Sequence[_Entry], asked: Asked, options: Options) -> Outcome:
    """Let the entries compete; what does not depend on them is left empty."""
    running = _running(entries, options)
    sums = _sums(running) if asked.closed else {}
    best = _best(running, sums)
    _explain(entries, running, best, sums)
    released = "released_text" in options.compat
    cited = best.critique["passage"]
    return Outcome(
        answer=released_lead(best.answer) if released else best.answer,
        raw=best.critique["text"],
        passages=[],
        cited=[] if cited is None else [cited],
        score=sums.get(best.answer, best.critique["total"]),
        choices=[],
        critiques=[entry.critique for entry in entries],
        flags=[flag for flag in best.critique["flags"] if flag in _OF_THE_ANSWER],
        tokens=sum(entry.tokens for entry in entries),
    )


def _running(entries: Sequence[_Entry], options: Options) -> list[_Entry]:
    """Return who competes: none that hard constraints drop, no empty one among others."""
    pool = list(entries)
    if options.constraints == "hard":
        pool = [entry for entry in entries if not entry.dropped]
        if not pool:
            pool = list(entries)
            for entry in entries:
                entry.critique["flags"].append("constraint_fallback")
    return [entry for entry in pool if "empty" not in entry.critique["flags"]] or pool


def _sums(entries: Sequence[_Entry]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for entry in entries:
        sums[entry.answer] = sums.get(entry.answer, 0.0) + entry.critique["total"]
    return sums


def _best(entries: Sequence[_Entry], sums: dict[str, float]) -> _Entry:
    """Return the first of the best; with sums, the best of the answer with the largest one."""
    if sums:
        winner = max(sums, key=sums.__getitem__)
        entries = [entry for entry in entries if entry.answer == winner]
    return max(entries, key=lambda entry: entry.critique["total"])


def _explain(
    entries: Sequence[_Entry], running: Sequence[_Entry], best: _Entry, sums: dict[str, float]
) -> None:
    for entry in entries:
        critique = entry.critique
        competes = any(entry is other for other in running)
        critique["chosen"] = entry is best or bool(
            sums and competes and entry.answer == best.answer
        )
        critique["kept"] = critique["chosen"]
        critique["why"] = _why(entry, best, sums, competes=competes)


def _why(entry: _Entry, best: _Entry, sums: dict[str, float], *, competes: bool) -> str:
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
