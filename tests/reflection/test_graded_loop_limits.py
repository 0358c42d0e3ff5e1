"""The poster's variant: decision, time, tokens and failures, and both drivers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import ModelError
from crag.papers.experiments.poster import GradeLevel, graded_loop
from crag.parts import Prefix
from crag.reflection.driver import Asked, Judged, arun
from crag.reflection.short_form import short_form
from crag.reflection.testing import FakeReflection, fake_candidate, fake_decision
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import NO_RETRIEVAL
from crag.state import Choice
from tests.reflection.graded_passages import (
    ALL_HIGH,
    ALWAYS,
    ASKED,
    PASSAGES,
    answer,
    asked_for,
    backend_of,
    chosen,
    no_later_search,
    no_search,
    so_so,
    whys,
)
from tests.reflection.scripted import run


@pytest.mark.parametrize(
    ("options", "share"),
    [
        (ReflectionSettings(retrieval_mode="never"), 0.9),
        (ReflectionSettings(retrieval_mode="adaptive"), 0.1),
        (ReflectionSettings(retrieval_mode="hard"), 0.4),
        (ReflectionSettings(compat=frozenset({"released_ratio"})), 0.9),
    ],
)
def test_where_it_does_not_retrieve_it_answers_as_the_short_form(
    options: ReflectionSettings, share: float
) -> None:
    backend = backend_of(fake_candidate("A."), otherwise=fake_decision(share))
    found = answer(backend, ["high"], options)
    assert asked_for(backend) == [("", None)]
    assert (found["answer"], found["passages"], chosen(found)) == ("I guess.", [], [None])
    assert found["critiques"][0]["why"].startswith("the answer without a passage: ")
    short = run(short_form(ASKED, options), backend, no_search)
    for key in ("answer", "raw", "score", "choices", "cited", "passages", "flags", "tokens"):
        assert found[key] == short[key]


def test_the_decision_is_asked_for_once_and_followed() -> None:
    backend = backend_of(fake_candidate("A."), otherwise=fake_decision(0.9))
    found = answer(backend, ["high"], ReflectionSettings())
    assert backend.decided == [Prefix("Who?")]
    assert (found["answer"], found["choices"][0]["action"]) == ("A.", "retrieve")
    assert found["choices"][0]["ratio"] == pytest.approx(0.9)


def test_a_decision_that_was_taken_before_is_not_asked_for_again() -> None:
    taken = Choice(
        segment=0,
        hypothesis=0,
        action="retrieve",
        ratio=0.7,
        emitted="[Retrieval]",
        probabilities={"[Retrieval]": 0.7, NO_RETRIEVAL: 0.3},
        why="0.700 is above 0.2",
        flags=[],
    )
    backend = backend_of(fake_candidate("A."), otherwise=fake_decision(0.0))
    asked = ASKED._replace(passages=PASSAGES[:1], decided=taken)
    found = answer(backend, ["high"], ReflectionSettings(), asked)
    assert (backend.decided, found["choices"], found["answer"]) == ([], [taken], "A.")


def ticking(*seconds: float) -> Any:
    """Return a clock that shows these times one after the other, then the last one for ever."""
    times: Iterator[float] = iter(seconds)
    last = seconds[-1]
    return lambda: next(times, last)


def test_the_time_ends_it_with_the_best_so_far() -> None:
    options = ReflectionSettings(retrieval_mode="always", max_reflection_seconds=10)
    backend = backend_of(so_so("A.", 0.6), so_so("B.", 0.8), so_so("C."))
    # Begun at 0; the first is always generated, the second at 9, the third would be at 10.
    found = answer(backend, ALL_HIGH, options, clock=ticking(0, 9, 10))
    assert (found["answer"], found["flags"]) == ("B.", ["time_limit"])
    assert asked_for(backend) == [("", "first"), ("", "second")]
    assert whys(found)[2] == "the time was over before"


def test_the_first_is_generated_however_late_and_no_draft_after_the_time() -> None:
    options = ReflectionSettings(retrieval_mode="always", max_reflection_seconds=10)
    backend = backend_of(fake_candidate("A.", relevance=0.1))
    found = answer(
        backend, ["high", "medium", "low"], options, clock=ticking(0, 99), own_knowledge=True
    )
    assert asked_for(backend) == [("", "first")]
    assert (found["answer"], found["flags"]) == ("", ["time_limit", "empty"])
    assert whys(found)[1:] == ["the time was over before", "its grade is low"]
    assert "time_limit" not in answer(backend, ["high", "low"], options, clock=ticking(0))["flags"]


def test_a_draft_without_time_for_its_continuation_is_not_the_answer() -> None:
    options = ReflectionSettings(retrieval_mode="always", max_reflection_seconds=10)
    backend = backend_of(mixed=[so_so("More.")])
    found = answer(backend, ["medium"], options, clock=ticking(0, 99))
    assert (asked_for(backend), found["answer"]) == ([("", None)], "")
    assert found["flags"] == ["time_limit", "empty"]


def test_the_tokens_end_it_with_the_best_so_far() -> None:
    options = ReflectionSettings(
        retrieval_mode="always", max_reflection_tokens=5, max_segment_tokens=3
    )
    backend = backend_of(so_so("A a a."), so_so("B b.", 0.6), so_so("C."))
    found = answer(backend, ALL_HIGH, options)
    assert [limits.max_tokens for _, _, limits in backend.generated] == [3, 2]
    assert (found["answer"], found["flags"], found["tokens"]) == ("A a a.", ["token_limit"], 5)
    assert whys(found)[2] == "all tokens were spent before"


def test_a_model_that_does_not_stop_is_flagged() -> None:
    endless = fake_candidate("on and on", ending="length")
    assert answer(backend_of(endless), ["high"])["flags"] == ["cut"]


def test_a_failure_after_a_passage_of_use_ends_it_with_the_best_so_far() -> None:
    backend = backend_of(so_so("A."), fails_after=1)
    found = answer(backend, ["high", "medium", "high"])
    assert (found["answer"], found["flags"]) == ("A.", ["model_failed"])
    assert whys(found)[1:] == ["the model failed"] * 2
    assert "not_generated" in found["critiques"][2]["flags"]


@pytest.mark.parametrize("grades", [["high", "high"], ["medium"], ["high", "medium"]])
def test_a_failure_before_that_is_raised(grades: list[GradeLevel]) -> None:
    useless = fake_candidate("A.", relevance=0.1)
    with pytest.raises(ModelError, match="set to fail"):
        answer(backend_of(useless, fails_after=1), grades)
    with pytest.raises(ModelError, match="set to fail"):
        answer(backend_of(useless, fails_after=0), grades, ReflectionSettings())


def test_a_failing_draft_is_raised_where_it_would_be_the_answer() -> None:
    with pytest.raises(ModelError, match="set to fail"):
        answer(backend_of(fails_after=0), ["low"], own_knowledge=True)


def test_wrong_grades_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="1 for 3 passages"):
        graded_loop(ASKED, ["high"], ALWAYS)
    with pytest.raises(ValueError, match="passages: None"):
        graded_loop(Asked("Who?", "Who?"), [], ALWAYS)


def test_each_passage_is_announced_when_it_is_judged() -> None:
    told: list[Judged] = []
    seen: list[int] = []
    backend = backend_of(so_so("A."), mixed=[so_so("-"), so_so("B.", 0.6)], otherwise=None)

    def watch(judged: Judged) -> None:
        told.append(judged)
        seen.append(len(backend.generated))

    grades: list[GradeLevel] = ["high", "medium", "low"]
    found = run(graded_loop(ASKED, grades, ReflectionSettings()), backend, no_search, watch)
    assert seen == [0, 1, 2, 3, 3]
    assert [judged.choices for judged in told] == [tuple(found["choices"]), (), (), (), ()]
    critiques = [critique for judged in told for critique in judged.critiques]
    assert [critique["passage"] for critique in critiques] == [0, None, 1, 2]
    assert critiques[0]["why"] == "its grade is high: of full use"
    later = {"why", "kept", "chosen"}
    assert [{k: v for k, v in c.items() if k not in later} for c in critiques] == [
        {k: v for k, v in c.items() if k not in later} for c in found["critiques"]
    ]
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("grades", "options"),
    [
        (["high", "medium", "low"], ALWAYS),
        (["medium", "high", "high"], ReflectionSettings()),
        (["low", "low", "low"], ALWAYS),
        (ALL_HIGH, ReflectionSettings(retrieval_mode="never")),
        (ALL_HIGH, ReflectionSettings(retrieval_mode="always", max_reflection_tokens=1)),
    ],
)
async def test_async_does_the_same(grades: list[GradeLevel], options: ReflectionSettings) -> None:
    def backend() -> FakeReflection:
        return backend_of(so_so("A."), so_so("B."), mixed=[so_so("C."), fake_candidate("D.")])

    one, other = backend(), backend()
    told: list[Judged] = []
    steps = graded_loop(ASKED, grades, options, own_knowledge=True)
    found = await arun(steps, other, no_later_search, told.append)
    assert found == answer(one, grades, options, ASKED, own_knowledge=True)
    assert one.generated == other.generated
    assert sum(len(judged.critiques) for judged in told) == len(found["critiques"])


async def test_a_failure_is_met_in_async_too() -> None:
    backend = backend_of(so_so("A."), fails_after=1)
    found = await arun(graded_loop(ASKED, ALL_HIGH, ALWAYS), backend, no_later_search)
    assert (found["answer"], found["flags"]) == ("A.", ["model_failed"])
