"""Random candidates, decisions, passages and options for searches that must agree."""

import random
from collections.abc import Sequence
from typing import Any, get_args

from hypothesis import strategies as st

from crag.parts import Candidate, Decision, Passage, Prefix
from crag.reflection.testing import FakeReflection
from crag.reflection_settings import Compat, ReflectionSettings
from crag.reflection_tokens import RELEVANCE, RETRIEVE, SUPPORT, UTILITY
from crag.state import Ending

PASSAGES = tuple(Passage(f"T{place}", f"passage {place}.") for place in range(3))
OPTIONS = st.builds(
    ReflectionSettings,
    form=st.just("long"),
    retrieval_mode=st.sampled_from(["adaptive", "adaptive", "always", "hard", "never"]),
    delta=st.sampled_from([0.5, 0.2]),
    segment_retrieval=st.sampled_from(["static", "dynamic"]),
    skip_used_passages=st.booleans(),
    ignore_no_support=st.booleans(),
    sequence_score=st.booleans(),
    constraints=st.sampled_from(["soft", "hard"]),
    accumulation=st.sampled_from(["sum", "mean", "product"]),
    beam_width=st.integers(1, 3),
    max_depth=st.sampled_from([4, 3, 6, 1]),
    max_reflection_tokens=st.sampled_from([20_000, 40, 12]),
    compat=st.one_of(
        st.just(frozenset[Compat]()), st.sets(st.sampled_from(get_args(Compat))).map(frozenset)
    ),
)
"""Every switch that the search looks at."""


class RandomReflection(FakeReflection):
    """Candidates and decisions of all kinds, drawn from a seed and what they are asked for."""

    def __init__(self, seed: int, fails_after: int | None = None) -> None:
        super().__init__(self._drawn, fails_after=fails_after)
        self._seed = seed

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        super().decide(prefixes)
        draws = [self._random("decide", prefix.answered) for prefix in prefixes]
        return [Decision(_shares(draw, RETRIEVE), draw.choice(RETRIEVE)) for draw in draws]

    def _drawn(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        draw = self._random(prefix.answered, passage)
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

    def _random(self, *place: object) -> random.Random:
        return random.Random(f"{self._seed}/{place}")  # noqa: S311 - made-up data


def _shares(draw: random.Random, group: Sequence[str]) -> dict[str, float]:
    return {token: draw.random() for token in group if draw.random() < 0.9}


def found_for(query: str) -> Sequence[Passage]:
    """Find something else for each query, now and then nothing."""
    draw = random.Random(query)  # noqa: S311 - made-up data
    return draw.sample(PASSAGES, draw.randrange(len(PASSAGES) + 1))
