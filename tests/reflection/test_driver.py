"""What drives an algorithm within a node: requests, records, failures and costs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.errors import GraphInterrupt

from crag.errors import ModelError
from crag.reflection.backend import Decision, Passage, Prefix, SegmentLimits
from crag.reflection.driver import Driver, Reflected, asked_of, in_order, reflected, reflection_of
from crag.reflection.exchange import Decide, Generate, Retrieve, Steps
from crag.reflection.records import Choice, Outcome
from crag.reflection.spending import Spending, counting
from crag.reflection.testing import FakeReflection, fake_candidate, fake_decision
from crag.settings import Settings
from crag.testing import FakeRetriever

WAYS = ["run", "arun"]
DOCUMENTS = [Document(f"Text {n}.", metadata={"title": f"T{n}"}) for n in range(4)]
CHOICE = Choice(segment=0, hypothesis=0, action="retrieve", ratio=0.9, emitted="[Retrieval]",
                probabilities={"[Retrieval]": 0.9}, why="0.900 is above 0.2", flags=[])  # fmt: skip


def asking(*batches: Any) -> Steps[list[Any]]:
    answers = []
    for batch in batches:
        answers.append((yield batch))  # noqa: PERF401 - a comprehension cannot yield
    return answers


async def driven(way: str, driver: Driver, *batches: Any, **settings: Any) -> Reflected:
    context = Settings.model_validate(settings)
    if way == "run":
        return driver.run(lambda: asking(*batches), context)
    return await driver.arun(lambda: asking(*batches), context)


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
    asked = asked_of({"question": "Who?"} | given, Settings())
    assert asked.passages == passages
    assert asked.decided == (given["choices"][0] if given.get("choices") else None)


@pytest.mark.parametrize("way", WAYS)
async def test_passages_are_found_and_kept_with_their_sources(way: str) -> None:
    documents = [DOCUMENTS[0], Document(" \n"), *DOCUMENTS[1:]]
    driver = Driver(FakeReflection({}), "beam_step", retriever=FakeRetriever(documents=documents))
    found = await driven(way, driver, [Retrieve("a")], [Retrieve("b")], k=3)
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
    assert len((await driven(way, driver, [Retrieve("a")], k=7)).found) == 7


@pytest.mark.parametrize("way", WAYS)
async def test_without_retriever_nothing_is_found(way: str) -> None:
    found = await driven(way, Driver(FakeReflection({}), "beam_step"), [Retrieve("a")])
    assert (found.result, found.found, found.events) == ([[[]]], [], [])


@pytest.mark.parametrize("way", WAYS)
async def test_a_retriever_that_fails_is_an_event(way: str) -> None:
    retriever = FakeRetriever(error=KeyError("index"))
    driver = Driver(FakeReflection({}), "beam_step", retriever=retriever)
    found = await driven(way, driver, [Retrieve("a")])
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
        (None, "TypeError"),
    ],
)
async def test_every_failure_of_a_back_end_is_one_event(way: str, error: Any, detail: str) -> None:
    driver = Driver(Odd(error), "decide", without="retrieve")
    found = await driven(way, driver, [Decide(Prefix("Who?"))])
    assert found.result is None
    (event,) = found.events
    assert (event["kind"], event["node"], event["fallback"]) == (
        "model_failed", "decide", "retrieve",
    )  # fmt: skip
    assert detail in event["detail"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [GraphInterrupt(), asyncio.CancelledError()])
async def test_what_is_no_failure_passes(way: str, error: BaseException) -> None:
    with pytest.raises(type(error)):
        await driven(way, Driver(Odd(error), "decide"), [Decide(Prefix("Who?"))])


@pytest.mark.parametrize("way", WAYS)
async def test_costs_are_counted_for_each_run_also_of_one_that_fails(way: str) -> None:
    generate = Generate(Prefix("Who?"), (None,), SegmentLimits())
    backend = FakeReflection({("", None): fake_candidate("Ada.")}, fails_after=3)
    driver = Driver(backend, "short_form")
    with counting() as outer:
        first = await driven(way, driver, [Decide(Prefix("Who?"))], [generate])
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
    outcome = Outcome(answer="Ada.", raw="Ada.", passages=read, cited=[0], score=1.0,
                      choices=[CHOICE], critiques=[], flags=["cut"], tokens=3)  # fmt: skip
    state: Any = {"passages": [passage], "choices": []}
    update = reflected(state, Reflected(outcome, [], [], Spending()), "by rule")
    assert update["passages"] == [passage]
    assert (update["choices"], update["approximation"]) == ([CHOICE], "by rule")
    assert update["reflection"] == reflection_of(outcome)
    assert set(reflection_of(outcome)) == {"answer", "raw", "cited", "score", "flags", "tokens"}
    update = reflected(state, Reflected(None, [passage], [], Spending()), "")
    assert (update["reflection"], update["search"]) == (None, None)
    assert update["passages"] == [passage, passage]
