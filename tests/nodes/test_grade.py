"""Languages that an evaluator does not read; what grading decides is tested with the graphs."""

from typing import Any

import pytest
from langchain_core.documents import Document

from crag.nodes.grade import Grade
from crag.settings import Settings
from crag.testing import FakeEvaluator

ENGLISH = "The notice period is four weeks."
GERMAN = "Die Frist für eine Kündigung beträgt vier Wochen."


class English(FakeEvaluator):
    languages = frozenset({"en"})


def graded(evaluator: FakeEvaluator, question: str, text: str) -> list[tuple[str, str]]:
    state: Any = {"question": question, "documents": [Document(text)]}
    update = Grade(evaluator).run(state, Settings())
    assert [one.metadata["score"] for one in update["documents"]] == [1.0]
    return [(event["kind"], event["detail"]) for event in update["events"]]


@pytest.mark.parametrize(
    ("question", "text", "what"),
    [("Wie lange ist die Frist?", ENGLISH, "question"), ("How long is it?", GERMAN, "documents")],
)
def test_a_language_that_is_not_read_is_recorded_once(question: str, text: str, what: str) -> None:
    ((kind, detail),) = graded(English(), question, text)
    assert kind == "unread_language"
    assert detail.startswith(f"the {what} seem")
    assert "to be in German, and the evaluator reads English" in detail


def test_nothing_is_recorded_of_what_is_read() -> None:
    assert graded(English(), "How long is it?", ENGLISH) == []
    assert graded(FakeEvaluator(), "Wie lange ist die Frist?", GERMAN) == []
