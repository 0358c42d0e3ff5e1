"""Passages as they are offered, and critiques as plain JSON."""

from collections.abc import Sequence

from crag.reflection.backend import Candidate, Passage
from crag.reflection.records import Critique, PassageRecord
from crag.reflection.scoring import Scored, normalised


class Offered:
    """Every passage of a run once, in the order it first came."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._passages: list[Passage] = []

    def add(self, passages: Sequence[Passage]) -> list[int]:
        """Return the index of each passage, a repeated one left out.

        Passages are the same if title and text are, up to white space.
        """
        return list(dict.fromkeys(self._place(passage) for passage in passages))

    def __getitem__(self, index: int | None) -> Passage | None:
        return None if index is None else self._passages[index]

    def numbered(self, index: int | None) -> tuple[int, Passage] | None:
        """Return a passage with its index."""
        return None if index is None else (index, self._passages[index])

    def records(self) -> list[PassageRecord]:
        """Return all passages as plain JSON."""
        return [PassageRecord(title=p.title, text=p.text) for p in self._passages]

    def _place(self, passage: Passage) -> int:
        key = (_folded(passage.title), _folded(passage.text))
        if key not in self._places:
            self._places[key] = len(self._passages)
            self._passages.append(passage)
        return self._places[key]


def critique_of(
    candidate: Candidate,
    scored: Scored,
    passage: tuple[int, Passage] | None,
    *,
    segment: int = 0,
    hypothesis: int = 0,
) -> Critique:
    """Write down how a candidate was scored; what becomes of it is told later."""
    return Critique(
        segment=segment,
        hypothesis=hypothesis,
        passage=passage[0] if passage else None,
        title=passage[1].title if passage else "",
        text=candidate.text,
        probabilities=_probabilities(candidate, has_passage=passage is not None),
        relevance=scored.relevance,
        support=scored.support,
        utility=scored.utility,
        sequence=scored.sequence,
        total=scored.total,
        kept=False,
        chosen=False,
        why="",
        flags=list(scored.flags),
    )


def _probabilities(candidate: Candidate, *, has_passage: bool) -> dict[str, dict[str, float]]:
    found = {"utility": normalised("utility", candidate.utility or {})}
    if has_passage:
        found["relevance"] = normalised("relevance", candidate.relevance or {})
        found["support"] = normalised("support", candidate.support or {})
    return {group: shares for group, shares in found.items() if shares}


def _folded(text: str) -> str:
    return " ".join(text.split())
