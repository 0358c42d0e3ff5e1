"""The drivers merge calls, answer in order, hand failures in, and leave nothing running."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.errors import ModelError
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    SegmentLimits,
)
from crag.reflection.beam import long_form
from crag.reflection.exchange import Asked, Decide, Generate, Request, Retrieve, Steps, arun, run
from crag.reflection.options import Options
from crag.reflection.spending import counting
from crag.reflection.testing import FakeReflection, fake_candidate, fake_decision

PASSAGE = Passage("T", "text")
BATCH = [
    Decide(Prefix("Who?")),
    Retrieve("query"),
    Generate(Prefix("Who?"), (PASSAGE, None), SegmentLimits()),
]
TABLE: dict[tuple[str, str | None], Candidate] = {
    ("", "text"): fake_candidate("A."),
    ("", None): fake_candidate("B."),
}


def asking(*batches: Any) -> Steps[list[Any]]:
    answers = []
    for batch in batches:
        answers.append((yield batch))  # noqa: PERF401 - a comprehension cannot yield
    return answers


def surviving() -> Steps[str]:
    try:
        yield [Decide(Prefix("Who?"))]
    except ModelError as error:
        return f"went on after: {error}"
    return "did not fail"


def search(query: str) -> list[Passage]:
    return [Passage(query, "found")]


async def asearch(query: str) -> list[Passage]:
    await asyncio.sleep(0)
    return search(query)


class Meeting(FakeReflection):
    """Generates only once two calls have asked."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self._barrier = asyncio.Barrier(2)

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        await self._barrier.wait()
        return self.candidates(continuations, limits)


class Halting(FakeReflection):
    """Fails for segments of one token, and is slow for all others."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.finished = 0

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        if limits.max_tokens == 1:
            raise ModelError("fake", "failed", "one")
        await asyncio.sleep(0.01)
        self.finished += 1
        return self.candidates(continuations, limits)


class Short(FakeReflection):
    """Leaves out the last answer of each call."""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        return super().decide(prefixes)[:-1]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        return super().candidates(continuations, limits)[:-1]


async def test_each_request_of_a_batch_gets_its_answer_in_order() -> None:
    expected = [
        [
            fake_decision(0.9),
            [Passage("query", "found")],
            [fake_candidate("A."), fake_candidate("B.")],
        ]
    ]
    assert run(asking(BATCH), FakeReflection(TABLE), search) == expected
    assert await arun(asking(BATCH), FakeReflection(TABLE), asearch) == expected


async def test_an_algorithm_that_asks_nothing_ends() -> None:
    assert run(asking(), FakeReflection({}), search) == []
    assert await arun(asking(), FakeReflection({}), asearch) == []


async def test_async_calls_for_a_batch_run_side_by_side() -> None:
    batch = [Generate(Prefix("Who?"), (PASSAGE,), SegmentLimits(most)) for most in (1, 2)]
    steps = asking(batch)
    (answers,) = await asyncio.wait_for(arun(steps, Meeting(), asearch), timeout=5)
    assert answers == [[fake_candidate("A.")]] * 2


TWO = Passage("U", "other")
MIXED: list[Request] = [
    Decide(Prefix("Who?")),
    Generate(Prefix("Who?"), (PASSAGE, None), SegmentLimits(7)),
    Retrieve("query"),
    Generate(Prefix("Who?", "A."), (TWO,), SegmentLimits(9)),
    Decide(Prefix("Who?", "A.")),
    Generate(Prefix("Who?", "B."), (), SegmentLimits(7)),
    Generate(Prefix("Who?", "C."), (None, TWO), SegmentLimits(7)),
]


def echo(prefix: Prefix, passage: Passage | None) -> Candidate:
    return fake_candidate(f"{prefix.answered} {passage.text if passage else ''}")


def echoing() -> FakeReflection:
    return FakeReflection(echo, {"A.": fake_decision(0.1)})


async def test_what_can_be_one_call_is_one() -> None:
    expected = [run(asking([one]), echoing(), search)[0][0] for one in MIXED]
    assert [answer[0].text for answer in expected[1::5]] == [" text", "C. "]
    for driven in (True, False):
        backend = echoing()
        with counting() as spending:
            steps = asking(MIXED)
            (answers,) = (
                run(steps, backend, search) if driven else await arun(steps, backend, asearch)
            )
        assert answers == expected
        assert backend.decided == [Prefix("Who?"), Prefix("Who?", "A.")]
        assert backend.batches == [4, 1]
        assert [limits.max_tokens for _, _, limits in backend.generated] == [7, 7, 9]
        assert spending.usage == {"llm_calls": 3}


prefixes = st.builds(Prefix, st.just("Who?"), st.sampled_from(["", "A.", "B."]))
requests = st.one_of(
    st.builds(Decide, prefixes),
    st.builds(Retrieve, st.text(max_size=3)),
    st.builds(
        Generate,
        prefixes,
        st.lists(st.sampled_from([PASSAGE, TWO, None]), max_size=3).map(tuple),
        st.builds(SegmentLimits, st.sampled_from([1, 2]), st.booleans()),
    ),
)


@given(st.lists(requests, max_size=8))
@settings(deadline=None)
def test_a_batch_is_answered_as_its_requests_are_one_by_one(batch: list[Request]) -> None:
    expected = [run(asking([one]), echoing(), search)[0][0] for one in batch]
    assert run(asking(batch), echoing(), search) == [expected]
    assert asyncio.run(arun(asking(batch), echoing(), asearch)) == [expected]


def test_each_round_of_a_beam_search_is_one_call() -> None:
    def going_on(prefix: Prefix, passage: Passage | None) -> Candidate:
        assert passage is not None
        text = f"{len(prefix.answered)} {passage.text}."
        return fake_candidate(text, utility=None, ending="retrieve")

    backend = FakeReflection(going_on)
    asked = Asked("Who?", "Who?", passages=(PASSAGE, TWO))
    options = Options(form="long", beam_width=2, max_depth=3)
    with counting() as spending:
        run(long_form(asked, options), backend, search)
    assert backend.batches == [2, 4, 4]
    assert len(backend.decided) == 5
    assert spending.usage == {"llm_calls": 6}


async def test_a_failure_is_handed_to_the_algorithm() -> None:
    failing = FakeReflection({}, fails_after=0)
    assert run(surviving(), failing, search).endswith("it was told to fail")
    assert (await arun(surviving(), failing, asearch)).startswith("went on after")
    with pytest.raises(ModelError):
        run(asking(BATCH), failing, search)
    with pytest.raises(ModelError):
        await arun(asking(BATCH), failing, asearch)


async def test_a_failure_leaves_no_call_running() -> None:
    backend = Halting()
    batch = [Generate(Prefix("Who?"), (PASSAGE,), SegmentLimits(most)) for most in (1, 2, 3)]
    with pytest.raises(ModelError):
        await arun(asking(batch), backend, asearch)
    assert backend.finished == 2


async def test_errors_that_are_not_the_models_pass_through() -> None:
    async def refuse(query: str) -> list[Passage]:
        raise KeyError(query)

    with pytest.raises(KeyError):
        await arun(surviving_search(), FakeReflection({}, fails_after=0), refuse)


def surviving_search() -> Steps[str]:
    try:
        yield [Decide(Prefix("")), Retrieve("query")]
    except ModelError:
        return "swallowed"
    return "no failure"


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (BATCH[2:], "1 candidates for 2 passages"),
        (MIXED[1:2] + MIXED[5:], "3 candidates for 4 passages"),
        ([MIXED[0], MIXED[4]], "1 decisions for 2 prefixes"),
    ],
)
async def test_a_wrong_number_of_answers_is_the_models_failure(
    batch: list[Request], said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        run(asking(batch), Short(TABLE), search)
    with pytest.raises(ModelError, match=said):
        await arun(asking(batch), Short(TABLE), asearch)
