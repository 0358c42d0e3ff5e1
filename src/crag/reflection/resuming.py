"""A beam search as plain JSON, so that a graph can keep it between two rounds."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from crag.reflection.hypotheses import Hypothesis, Segment
from crag.reflection.records import (
    Choice,
    Critique,
    HypothesisRecord,
    PassageRecord,
    SearchRecord,
    SegmentRecord,
)


class Kept(NamedTuple):
    """All that a search needs to go on."""

    record: SearchRecord
    choices: Sequence[Choice]
    critiques: Sequence[Critique]
    passages: Sequence[PassageRecord]
    """In the order in which the records count them."""


def record_of(hypothesis: Hypothesis) -> HypothesisRecord:
    """Return a hypothesis as plain JSON."""
    return HypothesisRecord(
        before=hypothesis.before,
        segments=[cast("SegmentRecord", segment._asdict()) for segment in hypothesis.segments],
        done=hypothesis.done,
        ending=hypothesis.ending,
    )


def hypothesis_from(record: HypothesisRecord) -> Hypothesis:
    """Return the hypothesis that `record_of` wrote down."""
    segments = tuple(Segment(**segment) for segment in record["segments"])
    return Hypothesis(record["before"], segments, record["done"], record["ending"])


def copied(critique: Critique) -> Critique:
    """Return a critique that changes no more when the search goes on."""
    return cast("Critique", {**critique, "flags": list(critique["flags"])})
