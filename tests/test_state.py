"""The reducers of the state: what clients send is taken, or refused; counts are summed."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import InvalidUpdateError

from crag.errors import QuestionError
from crag.state import (
    Usage,
    add_chat,
    add_usage,
    extend_events,
    fresh_usage,
    known_action,
    replace_documents,
)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "robot", "content": "Who?"}, "Unexpected message type"),
        ({"content": "Who?"}, "role"),
        (7, "int"),
        ({"role": "user", "content": 7}, "content"),
    ],
)
def test_what_is_no_message_is_refused_with_the_form_of_one(message: Any, problem: str) -> None:
    with pytest.raises(QuestionError) as caught:
        add_chat([], [message])
    told = str(caught.value)
    assert told.startswith("`messages` cannot be read: ")
    assert problem in told
    assert 'Write each as {"role": "user", "content": "…"}' in told
    assert "\n" not in told


def test_a_chat_that_is_null_is_none() -> None:
    assert add_chat([], None) == []


@pytest.mark.parametrize("document", [7, {"metadata": {}}, {"page_content": 7}, "words"])
def test_what_is_no_document_is_refused_with_the_form_of_one(document: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="must each have a `page_content` and may have"):
        replace_documents([], [Document("Kept."), document])


def test_documents_of_clients_are_documents() -> None:
    sent: Any = {"page_content": "Words.", "metadata": {"source": "a.md"}}
    assert replace_documents([], [sent]) == [Document("Words.", metadata={"source": "a.md"})]


def test_an_action_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidUpdateError, match=r"'maybe': allowed are correct, .*ambiguous"):
        known_action("maybe")


def test_counts_that_replace_do_so_when_a_checkpointer_has_kept_them() -> None:
    serializer = JsonPlusSerializer()
    kept = serializer.loads_typed(serializer.dumps_typed(fresh_usage(Usage(llm_calls=1))))
    assert add_usage(Usage(llm_calls=5, pages=2), kept) == {"llm_calls": 1}
    assert add_usage(Usage(llm_calls=1), Usage(llm_calls=2)) == {"llm_calls": 3}


@pytest.mark.parametrize(
    ("counts", "told"),
    [({"pages": "two"}, r"usage\.pages cannot be 'two'"), (None, "usage cannot be None")],
)
def test_what_is_no_count_is_refused(counts: Any, told: str) -> None:
    with pytest.raises(InvalidUpdateError, match=told):
        add_usage(Usage(), counts)


@pytest.mark.parametrize(
    "sent",
    [
        [{"kind": "abstained", "detail": "", "fallback": ""}],
        [{"kind": "abstained", "node": 7, "detail": "", "fallback": ""}],
        ["words"],
        "words",
    ],
)
def test_what_is_no_event_is_refused_with_what_one_has(sent: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="has the texts kind, node, detail, fallback"):
        extend_events([], sent)


def test_own_nodes_record_events_and_counts_of_their_own() -> None:
    mailed: Any = {"kind": "mailed", "node": "mail", "detail": "", "fallback": "", "to": 2}
    counts: Any = {"mails": 2}
    assert extend_events([], [mailed]) == [mailed]
    assert add_usage(Usage(), counts) == counts
