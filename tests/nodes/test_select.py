"""External knowledge from what was read."""

from crag.correction.provenance import unscored
from crag.nodes.select import Select
from crag.papers.settings import PaperSettings
from crag.settings import Settings
from crag.state import Source, State, Strip, WebPage
from crag.testing import FakeEvaluator

SOURCE = Source(id="hit-1", title="Ada", url="https://example.org/ada", position="paragraph 1")
TEXTS = ["Ada Lovelace wrote the first program.", "Buy programs here for less.", "Too short"]


def strips(*texts: str) -> list[Strip]:
    return [unscored(text, SOURCE, "web") for text in texts]


def test_all_paragraphs_in_one_call_against_the_question() -> None:
    evaluator = FakeEvaluator({"Lovelace wrote": 0.8})
    state = State(question="Who wrote the first program?", query="program", strips=strips(*TEXTS))
    update = Select(evaluator).run(state, Settings())
    assert [strip["kept"] for strip in update["strips"]] == [True, False, False]
    ((question, texts),) = evaluator.calls
    assert question == state["question"]
    assert texts == [f"Ada // {text}" for text in TEXTS[:2]]
    assert update["usage"] == {"evaluator_calls": 1, "evaluated_texts": 2}
    assert update["strips"][0]["source"] == SOURCE


def test_switched_off() -> None:
    evaluator = FakeEvaluator()
    update = Select(evaluator).run(
        State(question="q", strips=strips(*TEXTS)), PaperSettings(select=False)
    )
    assert all(strip["kept"] for strip in update["strips"])
    assert evaluator.calls == []


def test_of_very_many_paragraphs_those_are_judged_that_fit_by_words() -> None:
    many = [f"Paragraph {number} tells of the weather in May." for number in range(210)]
    many[113] = "The first program was written by Ada Lovelace."
    evaluator = FakeEvaluator({"Lovelace": 0.8})
    state = State(question="Who wrote the first program?", strips=strips(*many))
    update = Select(evaluator).run(state, Settings())
    assert [strip["text"] for strip in update["strips"] if strip["kept"]] == [many[113]]
    assert len(evaluator.calls[0][1]) == len(update["strips"]) == 200


def test_nothing_to_select_from() -> None:
    assert Select(FakeEvaluator()).run(State(question="q", strips=[]), Settings()) == {
        "strips": [],
        "events": [],
        "usage": {},
    }
    hit = WebPage(
        title="", url="https://example.org", snippet="", status="found", detail="", paragraphs=0,
    )  # fmt: skip
    update = Select(FakeEvaluator()).run(State(question="q", pages=[hit]), Settings())
    assert [entry["kind"] for entry in update["events"]] == ["search_empty"]
