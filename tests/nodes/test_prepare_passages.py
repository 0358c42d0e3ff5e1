"""What reflection is offered: documents as they are, graded, or the knowledge made of them."""

from typing import Any

import pytest
from langchain_core.documents import Document

from crag.nodes.prepare_passages import prepare_passages
from crag.papers.settings import PaperSettings
from crag.state import Source, Strip, StripKind

DOCUMENTS = [
    Document(f"Text {n}.", metadata={"title": f"T{n}", "source": f"{n}.md"}) for n in range(3)
]
LIMITS = {"upper": 0.5, "lower": -0.5}


def strip(
    text: str, *, kept: bool = True, score: float | None = 0.0, title: str = "S",
    kind: StripKind = "document",
) -> Strip:  # fmt: skip
    source = Source(id=text, title=title, url=f"{text}.md", position="")
    return Strip(text=text, kind=kind, source=source, score=score, kept=kept, reason="")


def web(text: str, **more: Any) -> Strip:
    return strip(text, kind="web", **more)


def graded(score: float) -> list[Document]:
    return [Document(one.page_content, metadata={**one.metadata, "score": score})
            for one in DOCUMENTS]  # fmt: skip


def offered(state: Any, *, prepared: bool = True, **settings: Any) -> list[Any]:
    context = PaperSettings.model_validate(settings)
    update = prepare_passages({"documents": DOCUMENTS} | state, context, prepared=prepared)
    return update["reflection"]["passages"]


INTERNAL = [strip("in 1"), strip("out", kept=False), strip(" in 2 ", score=0.9)]
WEB = [web("web 1"), web("web 2"), web("no", kept=False)]
KNOWN: dict[str, Any] = {"action": "ambiguous", "strips": [*INTERNAL, *WEB]}


def test_documents_are_offered_as_they_are() -> None:
    found = offered({}, prepared=False)
    assert [(p["title"], p["text"], p["label"], p["grade"]) for p in found] == [
        (f"T{n}", f"Text {n}.", "document", "") for n in range(3)
    ]
    assert [p["strips"][0]["source"]["url"] for p in found] == ["0.md", "1.md", "2.md"]


def test_documents_without_text_are_left_out_and_the_rest_keep_their_places() -> None:
    blank = [
        Document(text, metadata={"score": score})
        for text, score in ((" \n", 0.9), ("One.", 0.1), ("", -0.9))
    ]
    (found,) = offered({"documents": blank, "thresholds": LIMITS}, form="poster")
    assert (found["text"], found["grade"]) == ("One.", "medium")
    assert found["strips"][0]["source"]["id"] == "document-2"


@pytest.mark.parametrize(
    ("score", "grade"),
    [(0.5, "high"), (0.49, "medium"), (-0.5, "medium"), (-0.51, "low"), (float("-inf"), "low")],
)
def test_the_posters_grades_are_cut_at_the_thresholds(score: float, grade: str) -> None:
    found = offered({"documents": graded(score), "thresholds": LIMITS}, form="poster")
    assert [p["grade"] for p in found] == [grade] * 3
    assert [p["strips"][0]["score"] for p in found] == [score] * 3
    assert [p["label"] for p in found] == ["document"] * 3


@pytest.mark.parametrize(
    ("knowledge", "of_the_web"),
    [
        ("assembled", [("incorrect", "web 1\nweb 2")]),
        ("distributed", [("web", "web 1"), ("web", "web 2")]),
    ],
)
def test_each_kind_of_knowledge_is_offered_and_then_both(
    knowledge: str, of_the_web: list[tuple[str, str]]
) -> None:
    found = offered(KNOWN, self_crag_knowledge=knowledge)
    assert [(p["label"], p["text"]) for p in found] == [
        ("correct", "in 1\nin 2"),
        *of_the_web,
        ("ambiguous", "in 1\nin 2\nweb 1\nweb 2"),
    ]


def test_the_papers_tasks_join_by_semicolons() -> None:
    (found,) = offered(KNOWN, task="popqa")
    assert found["text"] == "Knowledge1: in 1; in 2 [sep] Knowledge2: web 1; web 2"
    one: Any = {**KNOWN, "strips": INTERNAL}
    (found,) = offered(one, task="popqa")
    assert found["text"] == "in 1; in 2"


def test_knowledge_bears_the_title_of_its_best_strip_or_of_the_first_document() -> None:
    state = {
        "action": "ambiguous",
        "strips": [
            strip("one", score=0.1, title="One"),
            strip("two", score=0.9, title="Two"),
            web("web", score=0.5, title="Web"),
            web("odd", title="Odd"),
        ],
    }
    assert [p["title"] for p in offered(state)] == ["Two"]
    assert [p["title"] for p in offered(state, task="popqa")] == ["T0"]
    unscored: Any = {"action": "correct", "strips": [web("web", title="Web", score=None)]}
    assert [p["title"] for p in offered(unscored)] == ["Web"]
