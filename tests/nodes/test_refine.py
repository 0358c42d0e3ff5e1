"""Internal knowledge."""

from langchain_core.documents import Document

from crag.nodes.refine import Refine
from crag.papers.settings import PaperSettings
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeEvaluator

DOCUMENTS = [
    Document("First fact stands here. Filler. More filler text. Last fact stands here too."),
    Document("Nothing of any interest in this one.", metadata={"title": "B", "source": "b.md"}),
]
STATE = State(question="Which facts?", documents=DOCUMENTS)


def test_every_strip_is_reported_and_the_best_are_kept_in_order() -> None:
    update = Refine(FakeEvaluator({"fact": 0.7})).run(STATE, Settings())
    assert [(strip["kept"], strip["score"]) for strip in update["strips"]] == [
        (True, 0.7), (True, 0.7), (False, -1.0),
    ]  # fmt: skip
    assert update["strips"][2]["source"] == {
        "id": "document-2", "title": "B", "url": "b.md", "position": "",
    }  # fmt: skip
    assert update["strips"][2]["reason"] == "below the strip threshold -0.5"


def test_the_official_title_rule_puts_it_once_before_the_passage() -> None:
    settings = PaperSettings(titles="passage")
    texts = [s["text"] for s in Refine(FakeEvaluator()).run(STATE, settings)["strips"]]
    assert any(text.startswith("B // Nothing") for text in texts)


def test_a_failing_evaluator_still_leaves_the_first_strip_and_an_event() -> None:
    update = Refine(FakeEvaluator(error=RuntimeError("broken"))).run(STATE, Settings())
    assert [strip["kept"] for strip in update["strips"]] == [True, False, False]
    assert [entry["kind"] for entry in update["events"]] == ["evaluator_failed"]
