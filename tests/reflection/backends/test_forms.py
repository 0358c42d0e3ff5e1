"""Forms are read strictly, and from their fields alone."""

import json
from typing import Any

import pytest

from crag.reflection.backends.forms import (
    Answer,
    JudgedSegment,
    NextRetrieval,
    Retrieval,
    Segment,
    filled,
)

GOOD = {
    "relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5, "next": "end",
}  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(GOOD),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=1)}\n```\nDone.",
        f'<think>{{"relevance": "irrelevant"}}</think>{json.dumps(GOOD)}',
        json.dumps(GOOD | {"relevance": " [Relevant]", "support": "Fully", "more": 1}),
    ],
)
def test_one_object_is_found_in_a_reply(reply: str) -> None:
    assert filled(JudgedSegment, reply) == JudgedSegment.model_validate(GOOD)


@pytest.mark.parametrize(
    "changed",
    [
        {"relevance": "perhaps"},
        {"support": None},
        {"utility": 0},
        {"utility": 6},
        {"utility": "good"},
        {"next": "stop"},
        {"text": None},
    ],
)
def test_a_value_outside_its_labels_is_no_form(changed: dict[str, Any]) -> None:
    assert filled(JudgedSegment, json.dumps(GOOD | changed)) is None


@pytest.mark.parametrize("reply", ["", "I cannot.", "{", "}{", "[]", json.dumps([GOOD, GOOD])])
def test_other_replies_are_no_form(reply: str) -> None:
    assert filled(JudgedSegment, reply) is None


def test_two_objects_are_no_form() -> None:
    assert filled(Answer, '{"text": "a", "utility": 5} {"text": "b", "utility": 1}') is None


def test_continue_is_a_choice_only_where_there_is_something_to_continue() -> None:
    said = '{"retrieval": "continue"}'
    assert filled(NextRetrieval, said) is not None
    assert filled(Retrieval, said) is None


def test_critiques_are_asked_for_in_the_order_of_the_tokens() -> None:
    assert list(JudgedSegment.model_fields) == list(GOOD)
    assert list(Segment.model_fields) == ["text", "utility", "next"]
    assert all(field.description for field in JudgedSegment.model_fields.values())
