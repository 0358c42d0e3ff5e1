"""Hypotheses of the long form: how they grow, compare, merge and are pruned."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crag.reflection.backend import Candidate, Ending
from crag.reflection.cleaning import cleaned
from crag.reflection.options import Accumulation
from crag.reflection.tokens import NO_RETRIEVAL, OPEN, RETRIEVAL


class Segment(NamedTuple):
    """One segment of a hypothesis."""

    text: str
    """With tokens; without the Retrieve token and passage it was generated after."""
    shown: str
    """Without tokens."""
    passage: int | None
    score: float
    critique: int
    """Index of its critique."""
    is_irrelevant: bool = False
    """The model said that the passage does not serve."""
    is_unsupported: bool = False
    """The model said that the passage does not support it."""


class Hypothesis(NamedTuple):
    """A beginning of an answer."""

    before: str = ""
    """The context of the last segment."""
    segments: tuple[Segment, ...] = ()
    done: bool = False
    ending: Ending = "retrieve"

    @property
    def answered(self) -> str:
        """All segments as the model wrote them: the context of the next one."""
        if not self.segments:
            return self.before
        last = self.segments[-1]
        return self.before + (NO_RETRIEVAL if last.passage is None else "") + last.text

    @property
    def shown(self) -> str:
        """What it says, without tokens."""
        return " ".join(segment.shown for segment in self.segments if segment.shown)

    @property
    def last_passage(self) -> int | None:
        """The passage of the last segment."""
        return self.segments[-1].passage if self.segments else None

    def used(self) -> set[int]:
        """Return the passages of all segments."""
        return {s.passage for s in self.segments if s.passage is not None}

    def score(self, accumulation: Accumulation) -> float:
        """Return the scores of the segments as one number; 0 without any."""
        scores = [segment.score for segment in self.segments]
        match accumulation:
            case "sum":
                return math.fsum(scores)
            case "mean":
                return math.fsum(scores) / max(1, len(scores))
            case "product":
                return math.prod(scores) if scores else 0.0


def cut(candidate: Candidate, *, at_retrieval: bool) -> tuple[str, Ending, bool]:
    """Return text and ending of a candidate, and whether it went on into an invented passage.

    `at_retrieval` cuts at the first ``[Retrieval]``, for continuations that did not stop there.
    """
    text, ending = candidate.text, candidate.ending
    if at_retrieval:
        text, found, _ = text.partition(RETRIEVAL)
        ending = "retrieve" if found else ending
    text, invented, _ = text.partition(OPEN)
    return text, ending, bool(invented)


def extended(
    parent: Hypothesis, segment: Segment, *, before: str, done: bool, ending: Ending
) -> Hypothesis:
    """Return the parent with one more segment, or ended where the segment says nothing."""
    if not segment.shown and parent.segments:
        return parent._replace(done=True, ending=ending)
    return Hypothesis(before, (*parent.segments, segment), done or not segment.shown, ending)


def segment_of(
    text: str, passage: int | None, score: float, critique: int, said: Iterable[bool]
) -> Segment:
    """Return a segment; `said` is whether it called its passage irrelevant, itself unsupported."""
    is_irrelevant, is_unsupported = said
    return Segment(text, cleaned(text), passage, score, critique, is_irrelevant, is_unsupported)


def merged(pool: Sequence[Hypothesis], accumulation: Accumulation) -> list[int]:
    """Return the places of those that stay: of all that say the same, the best, then the first.

    One that is done and one that is not are never the same.
    """
    best: dict[tuple[bool, str], int] = {}
    for place, hypothesis in enumerate(pool):
        key = (hypothesis.done, hypothesis.shown)
        other = best.setdefault(key, place)
        if hypothesis.score(accumulation) > pool[other].score(accumulation):
            best[key] = place
    return sorted(best.values())


def ranked(pool: Sequence[Hypothesis], accumulation: Accumulation) -> list[int]:
    """Return all places, best first; those that say nothing come last, ties keep their order."""

    def rank(place: int) -> tuple[bool, float]:
        return (not pool[place].shown, -pool[place].score(accumulation))

    return sorted(range(len(pool)), key=rank)
