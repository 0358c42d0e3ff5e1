"""A beam search put away after each round as JSON, and resumed, is the search in one go."""

import json
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.beam import BeamSearch, KeptSearch
from crag.reflection.driver import Asked, ReflectionOutcome
from crag.reflection.long_form import long_form, search_for
from crag.reflection.testing import FakeReflection
from crag.reflection_settings import ReflectionSettings
from tests.reflection.random_tables import OPTIONS, PASSAGES, RandomReflection, found_for
from tests.reflection.scripted import run


def travelled(kept: KeptSearch) -> KeptSearch:
    """Send all of it through JSON, as it stands in a checkpoint."""
    return KeptSearch(*json.loads(json.dumps(kept)))


def resumed(
    asked: Asked, options: ReflectionSettings, backend: FakeReflection
) -> tuple[ReflectionOutcome, int]:
    """Run a search that is put away after each round, and count the rounds."""
    search, rounds = search_for(options)(asked, options, lambda: 0.0), 0
    while not search.over:
        run(search.round(), backend, found_for)
        kept = search.keep()
        assert kept.record["over"] == search.over
        search = search_for(options).resumed(asked, options, travelled(kept), lambda: 0.0)
        rounds += 1
    return search.outcome(), rounds


@settings(deadline=None)
@given(st.integers(0, 10**9), OPTIONS, st.sampled_from([None, (), PASSAGES, PASSAGES[:1]]))
def test_a_resumed_search_is_the_search_in_one_go(
    seed: int, options: ReflectionSettings, passages: Any
) -> None:
    asked = Asked("Who?", "who", passages=passages)
    whole = run(long_form(asked, options, lambda: 0.0), RandomReflection(seed), found_for)
    pieces, rounds = resumed(asked, options, RandomReflection(seed))
    event(f"{rounds} rounds")
    assert pieces == whole
    assert json.loads(json.dumps(pieces)) == whole


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 5))
def test_a_failure_after_resuming_ends_the_search_alike(seed: int, calls: int) -> None:
    options = ReflectionSettings(form="long", retrieval_mode="always")
    asked = Asked("Who?", "who", passages=PASSAGES)
    whole = run(long_form(asked, options, lambda: 0.0), RandomReflection(seed, calls), found_for)
    pieces, _ = resumed(asked, options, RandomReflection(seed, calls))
    assert pieces == whole


def test_what_was_put_away_changes_no_more() -> None:
    options = ReflectionSettings(form="long", retrieval_mode="always")
    search = BeamSearch(Asked("Who?", "who", passages=PASSAGES), options)
    backend = RandomReflection(7)
    run(search.round(), backend, found_for)
    kept = search.keep()
    before = json.dumps(kept)
    while not search.over:
        run(search.round(), backend, found_for)
    assert any(critique["chosen"] for critique in search.outcome()["critiques"])
    assert json.dumps(kept) == before


def test_time_goes_on_counting_where_it_was_keep() -> None:
    options = ReflectionSettings(form="long", retrieval_mode="always", max_reflection_seconds=10)
    asked, now = Asked("Who?", "who", passages=PASSAGES), [0.0]

    def clock() -> float:
        return now[0]

    def endless(prefix: Prefix, passage: Passage | None) -> Candidate:
        del passage
        return Candidate(f"N{len(prefix.answered)}.", {}, None, None, -1.0, 1, "retrieve")

    search = BeamSearch(asked, options, clock)
    now[0] = 6.0
    run(search.round(), FakeReflection(endless), found_for)
    kept = search.keep()
    assert kept.record["seconds"] == pytest.approx(6)
    now[0] = 1000.0  # The time between two rounds is nobody's.
    search = BeamSearch.resumed(asked, options, travelled(kept), clock)
    assert not search.over
    now[0] += 5
    run(search.round(), FakeReflection(endless), found_for)
    assert search.over
    assert "time_limit" in search.outcome()["flags"]
