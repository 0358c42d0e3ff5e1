"""Short form: one candidate for each passage, and the best answer wins (Self-RAG, Sec. 3.3).

decide ── no ──→ one candidate after [No Retrieval] ────────────────────────────────┐
   └───── yes ─→ passages ─→ one candidate each, in one batch ─→ best, or of a ────┴─→ answer
                                                                 closed task the largest sum
"""

from collections.abc import Callable, Sequence

from crag.parts import Candidate, SegmentLimits, continuations
from crag.reflection.cleaning import short_answer
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import opening_choice
from crag.reflection.scoring import critique_of, objection
from crag.settings import Settings
from crag.state import Critique, Flag, Reflection

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut", "constraint_fallback"})


def short_form(
    asked: Asked,
    driver: Driver,
    *,
    score: Callable[[Candidate, int | None, Settings], Critique] = critique_of,
    read: Callable[[Critique], str] | None = None,
) -> Reflection:
    """Answer with the best of one candidate for each passage; ties go to the earlier passage.

    Without passages the answer is generated after ``[No Retrieval]``. Of a closed task the scores
    of identical answers are summed. `score`, and `read`, which returns the answer of a candidate,
    may be those of another program, for which empty answers compete like any other.
    """
    choice, settings = opening_choice(asked, driver), driver.settings
    offered, flags, places = Offered(), list[Flag](), list[int | None]([None])
    if choice["action"] != "no_retrieve":
        passages = driver.search(asked.query) if asked.passages is None else asked.passages
        places = [*offered.add(passages)] or places
        if places == [None]:
            flags.append("no_passages")
    limits = SegmentLimits(settings.max_new_tokens, whole_answer=True)
    shown = [offered[place] for place in places]
    candidates = driver.candidates(continuations(asked.prefix(), shown), limits)
    critiques = [
        score(candidate, place, settings)
        for candidate, place in zip(candidates, places, strict=True)
    ]
    answers = [read(one) if read else short_answer(one["text"]) for one in critiques]
    competing = _competing(critiques, settings, empty_compete=read is not None)
    sums: dict[str, float] = {}
    for at in competing if asked.closed else []:
        sums[answers[at]] = sums.get(answers[at], 0.0) + critiques[at]["total"]
    winner = max(sums, key=sums.__getitem__, default=None)
    winning = [at for at in competing if winner in {None, answers[at]}]
    best = max(winning, key=lambda at: critiques[at]["total"])
    for at, critique in enumerate(critiques):
        critique["chosen"] = critique["kept"] = at == best or (bool(sums) and at in winning)
        if at in competing:
            critique["why"] = _why(critique, critiques[best], sums.get(answers[at]))
    flags.extend(flag for flag in critiques[best]["flags"] if flag in _OF_THE_ANSWER)
    return Reflection(
        choices=[choice], passages=offered.records, beam=None, critiques=critiques,
        answer=answers[best], raw=critiques[best]["text"],
        cited=[place for place in [critiques[best]["passage"]] if place is not None],
        score=sums.get(answers[best], critiques[best]["total"]), flags=flags,
    )  # fmt: skip


def _competing(
    critiques: Sequence[Critique], settings: Settings, *, empty_compete: bool
) -> Sequence[int]:
    """Leave out what hard constraints drop, and empty answers, unless that leaves none."""
    every = range(len(critiques))
    pool: Sequence[int] = [at for at in every if not objection(critiques[at], settings)]
    for at in every:
        if not pool:
            critiques[at]["flags"].append("constraint_fallback")
        elif at not in pool:
            critiques[at]["why"] = f"it says {objection(critiques[at], settings)}"
    pool = pool or every
    spoken = [at for at in pool if "empty" not in critiques[at]["flags"]]
    if empty_compete or not spoken:
        return pool
    for at in set(pool) - {*spoken}:
        critiques[at]["why"] = "it is empty"
    return spoken


def _why(critique: Critique, best: Critique, summed: float | None) -> str:
    if summed is not None:
        relation = "the largest" if critique["chosen"] else "not the largest"
        return f"sum {summed:.3f} of its answer is {relation}"
    if critique is best:
        return f"the best score, {critique['total']:.3f}"
    if critique["total"] < best["total"]:
        return f"score {critique['total']:.3f} is below {best['total']:.3f}"
    return "as good as an earlier passage"
