"""The reducers of the state: what clients send is taken, or refused; the rest is merged."""

from typing import Any

import pytest

from crag.correction.provenance import unscored
from crag.errors import QuestionError
from crag.state import (
    Source,
    State,
    Strip,
    StripKind,
    add_chat,
    replace_strips,
)

SOURCE = Source(id="a", title="", url="", position="")


def test_the_state_has_sixteen_keys() -> None:
    assert set(State.__annotations__) == {
        "messages", "question", "asked", "documents", "thresholds", "action", "query", "pages",
        "strips", "answer", "outcome", "citations", "sentences", "events", "usage", "reflection",
    }  # fmt: skip


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


def strip(text: str, kind: StripKind) -> Strip:
    return unscored(text, SOURCE, kind)


def test_strips_replace_those_of_their_kind_and_documents_come_first() -> None:
    web, other = strip("web", "web"), strip("other web", "web")
    document = strip("document", "document")
    known = replace_strips([], [web])
    known = replace_strips(known, [document])
    assert known == [document, web]
    assert replace_strips(known, [other]) == [document, other]
    assert replace_strips(known, []) == known
