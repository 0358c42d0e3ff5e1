"""The query, and what replaces it."""

from typing import Any

import pytest

from crag.nodes.rewrite import Rewrite
from crag.papers.settings import PaperSettings
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeChatModel

STATE = State(question="Who is Ada Lovelace?")


def test_the_reply_is_the_query_on_one_line() -> None:
    model = FakeChatModel(replies=['"Ada Lovelace,\n first program"'])
    update = Rewrite(model).run(STATE, Settings())
    assert update["query"] == "Ada Lovelace, first program"
    assert update["usage"]["llm_calls"] == 1
    assert str(model.prompts[0][-1].content).endswith("question: Who is Ada Lovelace?\nquery:")


@pytest.mark.parametrize(
    "model",
    [
        FakeChatModel(error=TimeoutError()),
        FakeChatModel(replies=[""]),
        FakeChatModel(refusal="no"),
        FakeChatModel(replies=["Well. " * 99]),
        FakeChatModel(replies=["site:evil.org"]),
    ],
)
def test_the_question_is_the_query_when_there_is_no_reply(model: Any) -> None:
    update = Rewrite(model).run(STATE, Settings())
    assert update["query"] == "Ada Lovelace"
    assert [entry["kind"] for entry in update["events"]] == ["rewrite_failed"]
    assert update["events"][0]["fallback"] == "search for the question's keywords"
    assert update["usage"]["llm_calls"] == 1
    nothing = Rewrite(None).run(STATE, Settings())
    assert nothing == {"query": "Ada Lovelace", "events": [], "usage": {}}


def test_switched_off_or_nothing_to_search_costs_nothing() -> None:
    model = FakeChatModel()
    off = Rewrite(model).run(STATE, PaperSettings(rewrite=False))
    assert off == {"query": STATE["question"], "events": [], "usage": {}}
    assert Rewrite(model, searches=False).run(STATE, Settings()) == off
    assert model.prompts == []


def test_the_searcher_says_how_long_a_query_may_be() -> None:
    model = FakeChatModel(replies=["kettle " * 20])
    assert len(Rewrite(model, longest=50).run(STATE, Settings())["query"]) <= 50
    assert len(Rewrite(None, longest=8).run(STATE, Settings())["query"]) <= 8


def test_biography_questions_are_reduced_to_the_name() -> None:
    assert Rewrite(None).run(STATE, PaperSettings(task="biography"))["query"] == "Ada Lovelace"
