"""The drivers answer in order, hand failures in, and leave nothing running."""

import asyncio
from typing import Any

import pytest

from crag.errors import ModelError
from crag.reflection.backend import Candidate, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.exchange import Decide, Generate, Retrieve, Steps, arun, run
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
    """Decides only once two have asked."""

    def __init__(self) -> None:
        super().__init__({})
        self._barrier = asyncio.Barrier(2)

    async def adecide(self, prefix: Prefix) -> Decision:
        await self._barrier.wait()
        return fake_decision(0.1 if prefix.answered else 0.9)


class Halting(FakeReflection):
    """Fails for the prefix "bad", and is slow for all others."""

    def __init__(self) -> None:
        super().__init__({})
        self.finished = 0

    async def adecide(self, prefix: Prefix) -> Decision:
        if prefix.answered == "bad":
            raise ModelError("fake", "failed", "bad")
        await asyncio.sleep(0.01)
        self.finished += 1
        return fake_decision(0.9)


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


async def test_async_requests_of_a_batch_run_side_by_side() -> None:
    batch = [Decide(Prefix("Who?")), Decide(Prefix("Who?", "A."))]
    steps = asking(batch)
    (answers,) = await asyncio.wait_for(arun(steps, Meeting(), asearch), timeout=5)
    assert answers == [fake_decision(0.9), fake_decision(0.1)]


async def test_a_failure_is_handed_to_the_algorithm() -> None:
    failing = FakeReflection({}, fails_after=0)
    assert run(surviving(), failing, search).endswith("it was told to fail")
    assert (await arun(surviving(), failing, asearch)).startswith("went on after")
    with pytest.raises(ModelError):
        run(asking(BATCH), failing, search)
    with pytest.raises(ModelError):
        await arun(asking(BATCH), failing, asearch)


async def test_a_failure_leaves_no_request_running() -> None:
    backend = Halting()
    batch = [Decide(Prefix("", text)) for text in ("bad", "a", "b")]
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


async def test_a_wrong_number_of_candidates_is_the_models_failure() -> None:
    class Short(FakeReflection):
        def candidates(self, prefix: Any, passages: Any, limits: Any) -> list[Candidate]:
            return super().candidates(prefix, passages[:1], limits)

    with pytest.raises(ModelError, match="1 candidates for 2 passages"):
        run(asking(BATCH), Short(TABLE), search)
    with pytest.raises(ModelError, match="1 candidates for 2 passages"):
        await arun(asking(BATCH), Short(TABLE), asearch)
