"""What an algorithm asks is answered by back end and retriever, and their failures are recorded."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.errors import ModelError
from crag.parts import Continuation, Decision, Prefix, SegmentLimits
from crag.reflection.driver import Asked, Driver, asked_of
from crag.reflection.retrieval_decision import chosen
from crag.settings import Settings
from crag.state import Reflection
from crag.testing import FakeReflection, FakeRetriever
from tests.conftest import DOCUMENTS
from tests.reflection.scripted import ONE

SETTINGS = Settings(k=3)
CHOICE = chosen("retrieve", "it is wanted")


class Odd(FakeReflection):
    """Raises or returns what is given instead of decisions and candidates."""

    def __init__(self, reply: Any) -> None:
        super().__init__({})
        self._reply = reply

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        del prefixes
        if isinstance(self._reply, BaseException):
            raise self._reply
        replies: list[Decision] = self._reply
        return replies


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (ModelError("m", "key", "the key is wrong"), "the key is wrong"),
        (ConnectionError("gone"), "ConnectionError: gone"),
        (KeyError("choices"), "KeyError: 'choices'"),
        ([], "returned 0 results for 1 inputs"),
    ],
)
def test_every_failure_of_a_back_end_is_a_model_error_and_an_event(reply: Any, detail: str) -> None:
    driver = Driver(Odd(reply), SETTINGS, node="short_form")
    state: Any = {"question": "Who?", "reflection": {"choices": [CHOICE], "passages": [ONE]}}

    def algorithm(_: Asked, driver: Driver) -> Reflection:
        driver.decide([Prefix("Who?")])
        raise AssertionError

    update = driver.answer(state, algorithm)
    [event] = update["events"]
    assert (event["kind"], event["node"]) == ("model_failed", "short_form")
    assert detail in event["detail"]
    record = update["reflection"]
    assert record["answer"] == ""
    assert (record["choices"], record["passages"]) == ([CHOICE], [ONE])


def test_passages_are_found_and_kept_with_their_sources() -> None:
    documents = [DOCUMENTS[0], Document(" \n"), *DOCUMENTS[1:]]
    driver = Driver(FakeReflection({}), SETTINGS, retriever=FakeRetriever(documents=documents))
    found = driver.search("a")
    assert [one["text"] for one in found] == [one.page_content for one in DOCUMENTS[:2]]
    assert found[0]["strips"][0]["source"]["title"] == "Ada Lovelace"
    assert driver.events == []
    failing = FakeRetriever(error=KeyError("index"))
    driver = Driver(FakeReflection({}), SETTINGS, retriever=failing, node="n")
    assert driver.search("a") == []
    [event] = driver.events
    assert (event["kind"], event["node"]) == ("retrieval_failed", "n")
    assert "KeyError" in event["detail"]
    assert Driver(FakeReflection({}), SETTINGS).search("a") == []


@pytest.mark.parametrize(
    ("record", "passages", "decided"),
    [
        (None, None, None),
        ({"choices": [CHOICE]}, None, CHOICE),
        ({"choices": [CHOICE], "passages": []}, (), CHOICE),
        ({"passages": [ONE]}, (ONE,), None),
        # Of an earlier question on the thread.
        ({"choices": [CHOICE], "passages": [ONE], "answer": "Ada."}, None, None),
    ],
)
def test_what_nodes_before_wrote_is_not_done_again(
    record: Any, passages: Any, decided: Any
) -> None:
    state: Any = {"question": "Who?", "reflection": record}
    asked = asked_of(state, Settings())
    assert (asked.passages, asked.decided) == (passages, decided)


def test_what_is_spent_is_counted_for_each_run_and_of_one_that_fails() -> None:
    driver = Driver(FakeReflection({}, fails_after=3), SETTINGS)

    def algorithm(_: Asked, driver: Driver) -> Reflection:
        driver.decide([Prefix("Who?")])
        driver.candidates([Continuation(Prefix("Who?"), None)], SegmentLimits())
        return Reflection(choices=[], passages=[], critiques=[])

    updates = [driver.answer({"question": "Who?"}, algorithm)["usage"] for _ in range(2)]
    assert updates == [{"llm_calls": 2}, {"llm_calls": 1}]
