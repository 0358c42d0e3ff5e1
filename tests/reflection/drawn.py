"""A reflecting model whose decisions and candidates are drawn from a seed and what it is asked."""

import random
from collections.abc import Sequence
from typing import Any, get_args

from crag.parts import Candidate, Decision, Passage, Prefix
from crag.reflection.testing import FakeReflection
from crag.reflection_tokens import RELEVANCE, RETRIEVE, SUPPORT, UTILITY
from crag.state import Ending

PASSAGES = tuple(Passage(f"T{place}", f"passage {place}.") for place in range(3))


class DrawnReflection(FakeReflection):
    """Candidates and decisions of all kinds; the same seed and question give the same."""

    def __init__(self, seed: int, fails_after: int | None = None) -> None:
        super().__init__(self._drawn, fails_after=fails_after)
        self._seed = seed

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return drawn decisions."""
        super().decide(prefixes)
        draws = [self._draw("decide", prefix.answered) for prefix in prefixes]
        return [Decision(_shares(draw, RETRIEVE), draw.choice(RETRIEVE)) for draw in draws]

    def _drawn(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        draw = self._draw(prefix.answered, passage.text if passage else "")
        words = draw.choice(
            ["", "Ada.", "Babbage.", f"Note {draw.randrange(99)}.", "On <paragraph>"]
        )
        ending: Any = draw.choice([*["retrieve"] * 5, *get_args(Ending)])
        return Candidate(
            text=words + draw.choice(["", *SUPPORT]) + draw.choice(["", "", *RETRIEVE]),
            relevance=_shares(draw, RELEVANCE) if passage else None,
            support=_shares(draw, SUPPORT) if draw.random() < 0.8 else None,
            utility=_shares(draw, UTILITY) if ending == "end" else None,
            mean_log_probability=-3 * draw.random(),
            tokens=len(words.split()) + 1,
            ending=ending,
        )

    def _draw(self, *place: str) -> random.Random:
        return random.Random(f"{self._seed}/{'/'.join(place)}")  # noqa: S311 - made-up data


def _shares(draw: random.Random, group: Sequence[str]) -> dict[str, float]:
    return {token: draw.random() for token in group if draw.random() < 0.9}
