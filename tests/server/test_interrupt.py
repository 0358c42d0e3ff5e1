"""A human decides about the search: the run stops, waits on its thread, and goes on."""

from typing import Any

import pytest

from tests.loopback import Loopback
from tests.server.asking import INCORRECT, INPUT, QUESTION, QUICK, new_thread
from tests.server.chat import ANSWER, QUERY

pytestmark = pytest.mark.slow
ASKS = INCORRECT | {"confirm_web": True}
EDITED = "another query"


def stopped(client: Any, graph: str, search: Loopback) -> str:
    """Start a run, and return its thread once the run waits for a decision."""
    thread, searches = new_thread(client), len(search.requests)
    state = client.runs.wait(thread, graph, input=INPUT, context=ASKS)
    (request,) = state["__interrupt__"]
    assert request["value"]["kind"] == "confirm_web"
    assert (request["value"]["question"], request["value"]["query"]) == (QUESTION, QUERY)
    assert request["value"]["reason"].startswith("Incorrect: the best of 2 documents scores ")
    assert client.threads.get(thread)["status"] == "interrupted"
    (task,) = client.threads.get_state(thread)["tasks"]
    assert task["name"] == "web"
    assert task["interrupts"][0]["value"] == request["value"]
    assert len(search.requests) == searches
    return thread


def queries(search: Loopback, since: int) -> list[str]:
    return [request["q"] for request in search.requests[since:] if request["path"] == "/search"]


@pytest.mark.parametrize("graph", ["crag", "self_crag"])
def test_approved_the_web_is_searched(client: Any, search: Loopback, graph: str) -> None:
    thread, searches = stopped(client, graph, search), len(search.requests)
    state = client.runs.wait(thread, graph, command={"resume": "approve"}, context=ASKS)
    assert queries(search, searches) == [QUERY]
    assert state["refused"] is False
    assert [hit["title"] for hit in state["hits"]] == ["Correction"]
    assert [strip["kept"] for strip in state["external"]] == [True]
    assert client.threads.get(thread)["status"] == "idle"


def test_an_edited_query_is_searched_for_even_without_the_settings(
    client: Any, search: Loopback
) -> None:
    thread, searches = stopped(client, "crag", search), len(search.requests)
    state = client.runs.wait(thread, "crag", command={"resume": {"query": EDITED}})
    assert queries(search, searches) == [EDITED]
    assert (state["query"], state["question"]) == (EDITED, QUESTION)
    assert state["answer"] == ANSWER


@pytest.mark.parametrize("decision", ["approve", "refuse"])
def test_a_run_that_waits_is_decided_after_its_thread_went_on(
    client: Any, search: Loopback, decision: str
) -> None:
    thread = stopped(client, "crag", search)
    waiting = client.threads.get_state(thread)["checkpoint"]
    later = client.runs.wait(thread, "crag", input=INPUT, context=QUICK)
    assert later["answer"] == ANSWER
    searches = len(search.requests)
    state = client.runs.wait(
        thread, "crag", command={"resume": decision}, context=ASKS, checkpoint=waiting
    )
    approved = decision == "approve"
    assert queries(search, searches) == [QUERY] * approved
    assert (state["refused"], len(state["hits"] or [])) == (not approved, approved)


@pytest.mark.parametrize("decision", ["refuse", "perhaps"])
def test_refused_or_unclear_nothing_is_searched_for(
    client: Any, search: Loopback, decision: str
) -> None:
    thread, searches = stopped(client, "crag", search), len(search.requests)
    state = client.runs.wait(thread, "crag", command={"resume": decision}, context=ASKS)
    assert queries(search, searches) == []
    assert (state["refused"], state["external"], state["abstained"]) == (True, [], True)
    assert [event["kind"] for event in state["events"]] == ["search_refused", "abstained"]
    assert ("is not a decision" in state["events"][0]["detail"]) == (decision == "perhaps")
