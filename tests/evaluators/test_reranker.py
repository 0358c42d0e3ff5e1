"""An evaluator as a reranker, also by its name in `crag.toml`."""

from langchain_core.documents import Document

from crag.evaluators import EvaluatorReranker
from crag.graph import build_crag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeEvaluator, FakeQuoter, FakeRetriever

TEXTS = ["the lid", "a kettle", "of iron", "a kettle too"]
DOCUMENTS = [Document(text, metadata={"title": "T"}) for text in TEXTS]
JUDGE = FakeEvaluator({"kettle": 0.9, "iron": float("nan")}, otherwise=-1.0)


def test_the_best_come_first_and_equals_keep_their_order() -> None:
    found = EvaluatorReranker(evaluator=JUDGE).compress_documents(DOCUMENTS, "kettle?")
    assert [one.page_content for one in found] == ["a kettle", "a kettle too", "the lid", "of iron"]
    assert JUDGE.calls[-1] == ("kettle?", [f"T // {text}" for text in TEXTS])


def test_a_graph_grades_what_was_reranked() -> None:
    parts = Parts(
        retriever=FakeRetriever(documents=DOCUMENTS),
        reranker=EvaluatorReranker(evaluator=JUDGE),
        evaluator=FakeEvaluator(0.9),
        quoter=FakeQuoter(),
    )
    state = build_crag(parts).invoke({"question": "kettle?"}, context=Settings(k=2))
    assert [one.page_content for one in state["documents"]] == ["a kettle", "a kettle too"]
