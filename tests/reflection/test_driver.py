"""Algorithms are driven in as few calls as possible, and nodes record what they did."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.errors import GraphInterrupt

from crag.errors import ModelError
from crag.nodes.short_form import ShortForm
from crag.parts import Candidate, Continuation, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.driver import (
    AskCandidates,
    AskDecision,
    Asked,
    AskPassages,
    Driver,
    Reflected,
    ReflectionOutcome,
    Request,
    Steps,
    arun,
    asked_of,
    in_order,
)
from crag.reflection.long_form import long_form
from crag.reflection.spending import Spending, counting
from crag.reflection.testing import FakeReflection, fake_candidate, fake_decision
from crag.reflection_settings import ReflectionSettings
from crag.runtime.waiting import blocking
from crag.settings import Settings
from crag.state import Choice
from crag.testing import FakeRetriever
from tests.reflection.scripted import run

PASSAGE = Passage("T", "text")
BATCH = [
    AskDecision(Prefix("Who?")),
    AskPassages("query"),
    AskCandidates(Prefix("Who?"), (PASSAGE, None), SegmentLimits()),
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
        yield [AskDecision(Prefix("Who?"))]
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
    batch = [AskCandidates(Prefix("Who?"), (PASSAGE,), SegmentLimits(most)) for most in (1, 2)]
    steps = asking(batch)
    (answers,) = await asyncio.wait_for(arun(steps, Meeting(), asearch), timeout=5)
    assert answers == [[fake_candidate("A.")]] * 2


TWO = Passage("U", "other")
MIXED: list[Request] = [
    AskDecision(Prefix("Who?")),
    AskCandidates(Prefix("Who?"), (PASSAGE, None), SegmentLimits(7)),
    AskPassages("query"),
    AskCandidates(Prefix("Who?", "A."), (TWO,), SegmentLimits(9)),
    AskDecision(Prefix("Who?", "A.")),
    AskCandidates(Prefix("Who?", "B."), (), SegmentLimits(7)),
    AskCandidates(Prefix("Who?", "C."), (None, TWO), SegmentLimits(7)),
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
    st.builds(AskDecision, prefixes),
    st.builds(AskPassages, st.text(max_size=3)),
    st.builds(
        AskCandidates,
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
    options = ReflectionSettings(form="long", beam_width=2, max_depth=3)
    with counting() as spending:
        run(long_form(asked, options), backend, search)
    assert backend.batches == [2, 4, 4]
    assert len(backend.decided) == 5
    assert spending.usage == {"llm_calls": 6}


async def test_a_failure_is_handed_to_the_algorithm() -> None:
    failing = FakeReflection({}, fails_after=0)
    assert run(surviving(), failing, search).endswith("it is set to fail")
    assert (await arun(surviving(), failing, asearch)).startswith("went on after")
    with pytest.raises(ModelError):
        run(asking(BATCH), failing, search)
    with pytest.raises(ModelError):
        await arun(asking(BATCH), failing, asearch)


async def test_a_failure_leaves_no_call_running() -> None:
    backend = Halting()
    batch = [AskCandidates(Prefix("Who?"), (PASSAGE,), SegmentLimits(most)) for most in (1, 2, 3)]
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
        yield [AskDecision(Prefix("")), AskPassages("query")]
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


WAYS = ["run", "arun"]
DOCUMENTS = [Document(f"Text {n}.", metadata={"title": f"T{n}"}) for n in range(4)]
CHOICE = Choice(segment=0, hypothesis=0, action="retrieve", ratio=0.9, emitted="[Retrieval]",
                probabilities={"[Retrieval]": 0.9}, why="0.900 is above 0.2", flags=[])  # fmt: skip


async def driven(way: str, driver: Driver, *batches: Any, **values: Any) -> Reflected:
    context = Settings.model_validate(values)
    if way == "run":
        return blocking(driver.run(lambda: asking(*batches), context))
    return await driver.run(lambda: asking(*batches), context)


class Odd(FakeReflection):
    """Fails in a way of its own."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__({})
        self._error = error

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        del prefixes
        if self._error is not None:
            raise self._error
        return None  # type: ignore[return-value]


def test_what_is_asked_depends_on_the_task() -> None:
    state: Any = {"question": "Is it?"}
    asked = asked_of(state, Settings())
    assert (asked.instruction, asked.query, asked.closed) == ("Is it?", "Is it?", False)
    asked = asked_of(state, Settings(task="pubhealth"))
    assert asked.closed
    assert asked.instruction.endswith("Is it?")
    assert asked.instruction != asked.query == "Is it?"


@pytest.mark.parametrize(
    ("given", "passages"),
    [
        ({}, None),
        ({"passages": []}, ()),
        ({"passages": [{"title": "T", "text": "x"}]}, (Passage("T", "x"),)),
        ({"passages": [], "choices": []}, ()),
        ({"passages": [], "choices": [CHOICE]}, ()),
        # Nothing was looked for, so a later segment may look.
        ({"passages": [], "choices": [CHOICE | {"action": "no_retrieve"}]}, None),
    ],
)
def test_passages_that_were_looked_for_are_not_looked_for_again(given: Any, passages: Any) -> None:
    asked = asked_of({"question": "Who?", "reflection": given}, Settings())
    assert asked.passages == passages
    assert asked.decided == (given["choices"][0] if given.get("choices") else None)


@pytest.mark.parametrize("way", WAYS)
async def test_passages_are_found_and_kept_with_their_sources(way: str) -> None:
    documents = [DOCUMENTS[0], Document(" \n"), *DOCUMENTS[1:]]
    driver = Driver(FakeReflection({}), "beam_step", retriever=FakeRetriever(documents=documents))
    found = await driven(way, driver, [AskPassages("a")], [AskPassages("b")], k=3)
    texts = ["Text 0.", "Text 1."]
    assert [[p.text for p in batch[0]] for batch in found.result] == [texts, texts]
    assert [p["text"] for p in found.found] == texts * 2
    assert found.found[0]["strips"][0]["source"]["title"] == "T0"
    assert found.events == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_vector_store_is_asked_for_k(way: str) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(f"Text {n}.") for n in range(9)])
    retriever = store.as_retriever(search_kwargs={"k": 2})
    driver = Driver(FakeReflection({}), "beam_step", retriever=retriever)
    assert len((await driven(way, driver, [AskPassages("a")], k=7)).found) == 7


@pytest.mark.parametrize("way", WAYS)
async def test_without_retriever_nothing_is_found(way: str) -> None:
    found = await driven(way, Driver(FakeReflection({}), "beam_step"), [AskPassages("a")])
    assert (found.result, found.found, found.events) == ([[[]]], [], [])


@pytest.mark.parametrize("way", WAYS)
async def test_a_retriever_that_fails_is_an_event(way: str) -> None:
    retriever = FakeRetriever(error=KeyError("index"))
    driver = Driver(FakeReflection({}), "beam_step", retriever=retriever)
    found = await driven(way, driver, [AskPassages("a")])
    assert found.result == [[[]]]
    (event,) = found.events
    assert (event["kind"], event["node"]) == ("retrieval_failed", "beam_step")
    assert "KeyError" in event["detail"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ModelError("m", "key", "the key is wrong"), "the key is wrong"),
        (ConnectionError("gone"), "ConnectionError: gone"),
        (KeyError("choices"), "KeyError: 'choices'"),
        (None, "returned NoneType instead of a list of decisions"),
        (asyncio.CancelledError(), "raised CancelledError"),
    ],
)
async def test_every_failure_of_a_back_end_is_one_event(way: str, error: Any, detail: str) -> None:
    driver = Driver(Odd(error), "decide", without="retrieve")
    found = await driven(way, driver, [AskDecision(Prefix("Who?"))])
    assert found.result is None
    (event,) = found.events
    assert (event["kind"], event["node"], event["fallback"]) == (
        "model_failed", "decide", "retrieve",
    )  # fmt: skip
    assert detail in event["detail"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_signal_of_langgraph_is_no_failure(way: str) -> None:
    with pytest.raises(GraphInterrupt):
        await driven(way, Driver(Odd(GraphInterrupt()), "decide"), [AskDecision(Prefix("Who?"))])


@pytest.mark.parametrize("way", WAYS)
async def test_costs_are_counted_for_each_run_also_of_one_that_fails(way: str) -> None:
    generate = AskCandidates(Prefix("Who?"), (None,), SegmentLimits())
    backend = FakeReflection({("", None): fake_candidate("Ada.")}, fails_after=3)
    driver = Driver(backend, "short_form")
    with counting() as outer:
        first = await driven(way, driver, [AskDecision(Prefix("Who?"))], [generate])
        second = await driven(way, driver, [generate], [generate])
    assert first.result == [[fake_decision(0.9)], [[fake_candidate("Ada.")]]]
    assert (first.spending.usage, second.spending.usage) == ({"llm_calls": 2}, {"llm_calls": 1})
    assert second.result is None
    assert outer.usage == {}


def test_passages_come_in_the_order_of_the_records() -> None:
    known: Any = [
        {"title": "T", "text": "a", "label": "first"},
        {"title": "T", "text": "b"},
        {"title": "T", "text": "a", "label": "second"},
    ]
    records: Any = [{"title": "T", "text": "b"}, {"title": "T", "text": "a"}]
    assert in_order(records, known) == [known[1], known[0]]


def test_an_outcome_is_written_down_and_none_leaves_what_was_known() -> None:
    passage: Any = {"title": "T", "text": "a", "strips": []}
    read: Any = [{"title": "T", "text": "a"}]
    outcome = ReflectionOutcome(answer="Ada.", raw="Ada.", passages=read, cited=[0], score=1.0,
                      choices=[CHOICE], critiques=[], flags=["cut"], tokens=3)  # fmt: skip
    state: Any = {"reflection": {"passages": [passage], "choices": []}}
    node = ShortForm(FakeReflection({}, approximation="by rule"))
    written = node.update(state, Reflected(outcome, [], [], Spending()))["reflection"]
    assert written == {
        "answer": "Ada.", "raw": "Ada.", "cited": [0], "score": 1.0, "flags": ["cut"], "tokens": 3,
        "approximation": "by rule", "choices": [CHOICE], "passages": [passage], "critiques": [],
        "search": None,
    }  # fmt: skip
    written = node.update(state, Reflected(None, [passage], [], Spending()))["reflection"]
    assert "answer" not in written
    assert written["passages"] == [passage, passage]
