"""The poster's rule in the graph: graded documents one after the other, and no web."""

from typing import Any

from langchain_core.documents import Document

from crag.testing import FakeEvaluator, FakeRetriever
from tests.conftest import DOCUMENTS
from tests.graph.reflective import (
    OWN,
    QUESTION,
    build_self_crag,
    goes_on,
    kinds,
    reflecting,
)

GRADES = FakeEvaluator({"Lovelace": 0.9, "Babbage": 0.0}, otherwise=-0.9)
BEGIN, END = (
    ["open_run", "decide", "retrieve", "grade", "prepare_passages"],
    ["reflect:finish_reflection", "reflect"],
)


def test_the_posters_grades_decide_what_is_generated(make_parts: Any) -> None:
    other = Document("Kettles boil.", metadata={"title": "Kettle"})
    retriever = FakeRetriever(documents=[other, DOCUMENTS[1], DOCUMENTS[0]])

    def doubts(prefix: Any, passage: Any) -> Any:
        found = goes_on(prefix, passage)
        return found._replace(utility={"[Utility:2]": 1.0})

    parts = reflecting(make_parts, doubts, retriever=retriever, evaluator=GRADES)
    graph = build_self_crag(parts)
    state = graph.invoke(QUESTION, context={"form": "poster", "retrieval_mode": "always"})
    assert [p["grade"] for p in state["reflection"]["passages"]] == ["low", "medium", "high"]
    assert [p["strips"][0]["score"] for p in state["reflection"]["passages"]] == [-0.9, 0.0, 0.9]
    read = [[passage and passage.title for passage in g[1]] for g in parts.reflection.generated]
    assert read == [[None], ["Charles Babbage"], ["Ada Lovelace"]]
    assert state["usage"]["llm_calls"] == 3
    assert state["answer"].startswith("Ada Lovelace wrote")
    assert [entry["source"]["url"] for entry in state["citations"]] == ["ada.md"]
    fates = {critique["title"]: critique["chosen"] for critique in state["reflection"]["critiques"]}
    assert fates == {"": False, "Kettle": False, "Charles Babbage": False, "Ada Lovelace": True}


def test_the_poster_tells_where_own_knowledge_is_mixed_in(make_parts: Any) -> None:
    parts = reflecting(
        make_parts, retriever=FakeRetriever(documents=[DOCUMENTS[1]]), evaluator=GRADES
    )
    state = build_self_crag(parts).invoke(QUESTION, context={"form": "poster"})
    assert state["answer"].startswith(f"{OWN} Charles Babbage designed")
    assert state["answer"].endswith("[1].")
    assert kinds(state) == ["own_knowledge"]
    assert "0.900" not in state["events"][0]["detail"]
