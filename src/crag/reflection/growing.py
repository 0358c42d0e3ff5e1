"""From generated candidates to the hypotheses they make, and which of those stay in the beam."""

from collections.abc import Sequence
from typing import NamedTuple

from crag.reflection.backend import Candidate, Ending
from crag.reflection.critiques import Offered, critique_of
from crag.reflection.hypotheses import Hypothesis, cut, extended, merged, ranked, segment_of
from crag.reflection.options import Options
from crag.reflection.records import Critique
from crag.reflection.scoring import argmax, long_form_score, undesired_tokens
from crag.reflection.tokens import IRRELEVANT, NO_SUPPORT


class Task(NamedTuple):
    """One hypothesis to extend."""

    place: int
    """In the beam."""
    hypothesis: Hypothesis
    passages: tuple[int | None, ...]
    """By index; None for a segment without one."""
    is_whole: bool
    """Go on to the end: an answer without retrieval."""


class Child(NamedTuple):
    """A hypothesis after one more segment, or one that was finished before (no critique)."""

    hypothesis: Hypothesis
    critique: Critique | None = None
    dropped: tuple[str, ...] = ()
    """The undesired tokens it said of itself."""


def children_of(
    task: Task, candidates: Sequence[Candidate], offered: Offered, options: Options, first: int
) -> list[Child]:
    """Extend a hypothesis by each candidate; `first` is the index of the first one's critique."""
    children: list[Child] = []
    before = task.hypothesis.answered
    for place, (passage, candidate) in enumerate(zip(task.passages, candidates, strict=True)):
        at_retrieval = "whole_continuation" in options.compat and not task.is_whole
        text, ending, invented = cut(candidate, at_retrieval=at_retrieval)
        scored = long_form_score(candidate, options, has_passage=passage is not None)
        said = (
            argmax("relevance", candidate.relevance) == IRRELEVANT,
            argmax("support", candidate.support) == NO_SUPPORT,
        )
        segment = segment_of(text, passage, scored.total, first + place, said)
        done = task.is_whole or _is_done(candidate, ending, options)
        hypothesis = extended(task.hypothesis, segment, before=before, done=done, ending=ending)
        critique = critique_of(
            candidate._replace(text=text),
            scored,
            offered.numbered(passage),
            segment=len(task.hypothesis.segments),
            hypothesis=task.place,
        )
        _flag(critique, ending, empty=not segment.shown, invented=invented)
        children.append(Child(hypothesis, critique, tuple(undesired_tokens(candidate, options))))
        if "sibling_leak" in options.compat:
            before = task.hypothesis.before + text
    return children


def kept(
    finished: Sequence[Hypothesis], children: Sequence[Child], options: Options
) -> list[Child]:
    """Return the beam, best first, and write into the critiques what became of each child.

    Hard constraints drop children first, unless nothing would be left; of those that say the same
    the best stays; then the best `beam_width` of all.
    """
    entries = [*map(Child, finished), *children]
    if options.constraints == "hard":
        entries = _unconstrained(entries)
    different = merged([entry.hypothesis for entry in entries], options.accumulation)
    for place, entry in enumerate(entries):
        if place not in different:
            _conclude(entry, "another hypothesis that says the same scored at least as high")
            if entry.critique is not None:
                entry.critique["flags"].append("merged")
    entries = [entries[place] for place in different]
    order = ranked([entry.hypothesis for entry in entries], options.accumulation)
    for rank, place in enumerate(order, start=1):
        stays = rank <= options.beam_width
        beam = f"a beam of {options.beam_width}"
        _conclude(entries[place], f"place {rank} {'in' if stays else 'beyond'} {beam}", kept=stays)
    return [entries[place] for place in order[: options.beam_width]]


def _is_done(candidate: Candidate, ending: Ending, options: Options) -> bool:
    goes_on = ending not in ("end", "length")
    if "released_search" in options.compat:
        return ending != "retrieve" and not (goes_on and "released_remap" in options.compat)
    # The critique of usefulness ends an answer, but may stand after the part that was cut off.
    ends = candidate.utility is not None and "whole_continuation" not in options.compat
    return ends or not goes_on


def _flag(critique: Critique, ending: Ending, *, empty: bool, invented: bool) -> None:
    if empty:
        critique["flags"].append("empty")
    if ending == "length":
        critique["flags"].append("cut")
    if invented:
        critique["flags"].append("invented_passage")


def _unconstrained(entries: Sequence[Child]) -> list[Child]:
    """Drop those that said something undesired; all stay if that leaves none."""
    left = [entry for entry in entries if not entry.dropped]
    for entry in entries:
        if entry.critique is None or not entry.dropped:
            continue
        if left:
            _conclude(entry, f"it says {', '.join(entry.dropped)}")
        else:
            entry.critique["flags"].append("constraint_fallback")
    return left or list(entries)


def _conclude(entry: Child, why: str, *, kept: bool = False) -> None:
    if entry.critique is not None:
        entry.critique["kept"], entry.critique["why"] = kept, why
