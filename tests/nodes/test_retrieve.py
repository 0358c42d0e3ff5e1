"""Retrieval, refinement, and parts that fail."""

from typing import Any

import pytest
from langchain_core.documents import Document

from crag.nodes.refine import refine
from crag.nodes.retrieve import Retrieve
from crag.papers.settings import PaperSettings
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeEvaluator, FakeRetriever

ASKED: Any = {"question": "Who wrote it?"}


MANY = [Document(f"Text {number}.") for number in range(18)]


def test_the_retriever_is_asked_the_question_and_k_documents_stay() -> None:
    retriever = FakeRetriever(documents=MANY)
    update = Retrieve(retriever).run(ASKED, Settings(k=3))
    assert len(update["documents"]) == 3
    assert retriever.questions == ["Who wrote it?"]


def test_copies_of_a_text_stand_once_with_all_their_places() -> None:
    copies = [Document("Leave is  30 days.", metadata={"source": f"{n}.md"}) for n in range(9)]
    other = Document("Leave is 25 days in Berlin.", metadata={"source": "berlin.md"})
    titled = Document("leave is 30 days.", metadata={"title": "Interns", "source": "interns.md"})
    retriever = FakeRetriever(documents=[*copies, other, titled])
    found = Retrieve(retriever).run(ASKED, Settings(k=11))["documents"]
    assert [document.metadata["source"] for document in found] == [
        "0.md",
        "berlin.md",
        "interns.md",
    ]
    also = [{"source": f"{n}.md", "position": ""} for n in range(1, 9)]
    assert found[0].metadata["also"] == also


@pytest.mark.parametrize(
    ("retriever", "kind"),
    [
        (FakeRetriever(), "nothing_retrieved"),
        (FakeRetriever(error=ConnectionError("refused")), "retrieval_failed"),
    ],
)
def test_nothing_and_failure_are_events(retriever: FakeRetriever, kind: str) -> None:
    update = Retrieve(retriever).run(ASKED, Settings())
    assert update["documents"] == []
    assert [entry["kind"] for entry in update["events"]] == [kind]


class Choosy(FakeRetriever):
    """Takes one of the settings of a run."""

    run_settings: tuple[str, ...] = ("find_by",)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, find_by: str = "", **_: Any
    ) -> list[Document]:
        del query, run_manager
        return [Document(find_by)] * bool(find_by)


def test_a_retriever_gets_the_settings_that_it_takes() -> None:
    settings = Settings(find_by="words", folder="api")
    update = Retrieve(Choosy()).run(ASKED, settings)
    assert update["documents"] == [Document("words")]
    (ignored,) = update["events"]
    assert ignored["detail"] == "the retriever Choosy takes no folder"
    (nothing,) = Retrieve(Choosy(run_settings=("folder",))).run(ASKED, settings)["events"]
    assert nothing["detail"] == "no document of the folder 'api' was found: is it indexed?"


TYPED = "When was the harbuor dug?"
HARBOUR = [Document("The harbour was dug in 1731.")]


class Sorting(FakeRetriever):
    """Finds a second document for what is spelled as in its documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return found if "harbour" in query else found[:1]


def test_a_question_with_typing_errors_is_asked_again() -> None:
    retriever = Sorting(documents=[*HARBOUR, Document("It took five years.")])
    asked: Any = {"question": TYPED}
    update: Any = Retrieve(retriever).run(asked, Settings())
    assert retriever.questions == [TYPED, "When was the harbour dug?"]
    assert len(update["documents"]) == 2
    assert update["question"] == "When was the harbour dug?"
    (told,) = update["events"]
    assert told["kind"] == "question_respelled"
    assert "'When was the harbour dug?'" in told["detail"]
    again: Any = Retrieve(retriever).run({"question": "When was the harbour dug?"}, Settings())
    assert "question" not in again


@pytest.mark.parametrize("settings", [Settings(respell=False), PaperSettings(task="arc")])
def test_typing_errors_stay_where_nothing_is_to_be_changed(settings: Settings) -> None:
    retriever = FakeRetriever(documents=HARBOUR)
    update = Retrieve(retriever).run({"question": TYPED}, settings)
    assert retriever.questions == [TYPED]
    assert update["events"] == []


def test_what_was_found_stays_if_the_corrected_question_finds_nothing() -> None:
    class Literal(FakeRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            super()._get_relevant_documents(query, run_manager=run_manager)
            return HARBOUR if "harbuor" in query else []

    update = Retrieve(Literal()).run({"question": TYPED}, Settings())
    assert (update["documents"], update["events"]) == (HARBOUR, [])


DOCUMENTS = [
    Document("First fact stands here. Filler. More filler text. Last fact stands here too."),
    Document("Nothing of any interest in this one.", metadata={"title": "B", "source": "b.md"}),
]
STATE = State(question="Which facts?", documents=DOCUMENTS)


def test_every_strip_is_reported_and_the_best_are_kept_in_order() -> None:
    update = refine(STATE, Settings(), FakeEvaluator({"fact": 0.7}))
    assert [(strip["kept"], strip["score"]) for strip in update["strips"]] == [
        (True, 0.7), (True, 0.7), (False, -1.0),
    ]  # fmt: skip
    assert update["strips"][2]["source"] == {
        "id": "document-2", "title": "B", "url": "b.md", "position": "",
    }  # fmt: skip
    assert update["strips"][2]["reason"] == "below the strip threshold -0.5"


def test_the_official_title_rule_puts_it_once_before_the_passage() -> None:
    settings = PaperSettings(titles="passage")
    texts = [s["text"] for s in refine(STATE, settings, FakeEvaluator())["strips"]]
    assert any(text.startswith("B // Nothing") for text in texts)


def test_a_failing_evaluator_still_leaves_the_first_strip_and_an_event() -> None:
    update = refine(STATE, Settings(), FakeEvaluator(error=RuntimeError("broken")))
    assert [strip["kept"] for strip in update["strips"]] == [True, False, False]
    assert [entry["kind"] for entry in update["events"]] == ["evaluator_failed"]


class English(FakeRetriever):
    """Says which languages its embedding model reads."""

    languages: frozenset[str] = frozenset({"en"})


def test_a_question_in_a_language_that_is_not_read_is_recorded(documents: list[Document]) -> None:
    german: Any = {"question": "Wie lange ist die Frist für eine Kündigung?"}
    (recorded,) = Retrieve(English(documents=documents)).run(german, Settings())["events"]
    assert (recorded["kind"], recorded["node"]) == ("unread_language", "retrieve")
    assert Retrieve(English(documents=documents)).run(ASKED, Settings())["events"] == []
    assert Retrieve(FakeRetriever(documents=documents)).run(german, Settings())["events"] == []
