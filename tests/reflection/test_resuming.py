"""A beam search put away after each round as JSON, and resumed, is the search in one go."""

import json
import random
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from crag.reflection.backend import Candidate, Decision, Ending, Passage, Prefix
from crag.reflection.beam import Search, long_form
from crag.reflection.exchange import Asked, run
from crag.reflection.options import Compat, Options
from crag.reflection.records import Outcome
from crag.reflection.resuming import Kept
from crag.reflection.testing import FakeReflection
from crag.reflection.tokens import RELEVANCE, RETRIEVE, SUPPORT, UTILITY

PASSAGES = tuple(Passage(f"T{place}", f"passage {place}.") for place in range(3))
OPTIONS = st.builds(
    Options,
    form=st.just("long"),
    retrieval_mode=st.sampled_from(["adaptive", "always", "never", "hard"]),
    segment_retrieval=st.sampled_from(["static", "dynamic"]),
    skip_used_passages=st.booleans(),
    ignore_no_support=st.booleans(),
    sequence_score=st.booleans(),
    constraints=st.sampled_from(["soft", "hard"]),
    accumulation=st.sampled_from(["sum", "mean", "product"]),
    beam_width=st.integers(1, 3),
    max_depth=st.integers(1, 5),
    max_reflection_tokens=st.sampled_from([12, 40, 20_000]),
    compat=st.one_of(
        st.just(frozenset[Compat]()), st.sets(st.sampled_from(get_args(Compat))).map(frozenset)
    ),
)
"""Every switch that the search looks at."""


class Table(FakeReflection):
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
        words = draw.choice(["", "Ada.", "Babbage.", f"Note {draw.randrange(99)}.", "On <paragraph>"])
        ending: Ending = draw.choice(["retrieve", "retrieve", *get_args(Ending)])
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


def searching(query: str) -> Sequence[Passage]:
    """Find something else for each query, now and then nothing."""
    draw = random.Random(query)  # noqa: S311 - made-up data
    return draw.sample(PASSAGES, draw.randrange(len(PASSAGES) + 1))


def travelled(kept: Kept) -> Kept:
    """Send all of it through JSON, as it stands in a checkpoint."""
    return Kept(*json.loads(json.dumps(kept, allow_nan=False)))


def resumed(asked: Asked, options: Options, backend: FakeReflection) -> tuple[Outcome, int]:
    """Run a search that is put away after each round, and count the rounds."""
    search, rounds = Search(asked, options, lambda: 0.0), 0
    while not search.over:
        run(search.round(), backend, searching)
        kept = search.put_away()
        assert kept.record["over"] == search.over
        search = Search.resumed(asked, options, travelled(kept), lambda: 0.0)
        rounds += 1
    return search.outcome(), rounds


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 10**9), OPTIONS, st.sampled_from([None, (), PASSAGES, PASSAGES[:1]]))
def test_a_resumed_search_is_the_search_in_one_go(
    seed: int, options: Options, passages: Any
) -> None:
    options = _without_infinity(options)
    asked = Asked("Who?", "who", passages=passages)
    whole = run(long_form(asked, options, lambda: 0.0), Table(seed), searching)
    pieces, rounds = resumed(asked, options, Table(seed))
    event(f"{rounds} rounds")
    assert pieces == whole
    assert json.loads(json.dumps(pieces)) == whole


def _without_infinity(options: Options) -> Options:
    """Leave out the released ratio, which may be infinite: plain JSON has no such number."""
    return options.model_copy(update={"compat": options.compat - {"released_remap"}})


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 5))
def test_a_failure_after_resuming_ends_the_search_alike(seed: int, calls: int) -> None:
    options = Options(form="long", retrieval_mode="always")
    asked = Asked("Who?", "who", passages=PASSAGES)
    whole = run(long_form(asked, options, lambda: 0.0), Table(seed, calls), searching)
    pieces, _ = resumed(asked, options, Table(seed, calls))
    assert pieces == whole


def test_what_was_put_away_changes_no_more() -> None:
    options = Options(form="long", retrieval_mode="always")
    search = Search(Asked("Who?", "who", passages=PASSAGES), options)
    backend = Table(7)
    run(search.round(), backend, searching)
    kept = search.put_away()
    before = json.dumps(kept)
    while not search.over:
        run(search.round(), backend, searching)
    assert any(critique["chosen"] for critique in search.outcome()["critiques"])
    assert json.dumps(kept) == before


def test_time_goes_on_counting_where_it_was_put_away() -> None:
    options = Options(form="long", retrieval_mode="always", max_reflection_seconds=10)
    asked, now = Asked("Who?", "who", passages=PASSAGES), [0.0]

    def clock() -> float:
        return now[0]

    def endless(prefix: Prefix, passage: Passage | None) -> Candidate:
        del passage
        return Candidate(f"N{len(prefix.answered)}.", {}, None, None, -1.0, 1, "retrieve")

    search = Search(asked, options, clock)
    now[0] = 6.0
    run(search.round(), FakeReflection(endless), searching)
    kept = search.put_away()
    assert kept.record["seconds"] == pytest.approx(6)
    now[0] = 1000.0  # The time between two rounds is nobody's.
    search = Search.resumed(asked, options, travelled(kept), clock)
    assert not search.over
    now[0] += 5
    run(search.round(), FakeReflection(endless), searching)
    assert search.over
    assert "time_limit" in search.outcome()["flags"]
