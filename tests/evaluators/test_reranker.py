"""An evaluator as a reranker, also by its name in `crag.toml`."""

from pathlib import Path

import pytest
from langchain_core.documents import Document

from crag.cli.doctor import examine
from crag.errors import EvaluatorError
from crag.evaluators import EvaluatorReranker
from crag.factory.parts import choose_parts
from crag.graph import build_crag
from crag.parts import Parts
from crag.runtime.environment import Environment
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


def test_crag_toml_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_parts(Environment()).reranker is None
    (tmp_path / "crag.toml").write_text('reranker = "reader"\n')
    reranker = choose_parts(Environment()).reranker
    assert reranker is not None
    found = reranker.compress_documents([Document("Iron."), Document("Tea is hot.")], "hot tea")
    assert [one.page_content for one in found] == ["Tea is hot.", "Iron."]
    told = {one.part: one for one in examine(Environment())}
    assert (told["reranker"].state, told["reranker"].in_use) == ("ready", "reader")


def test_one_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_RERANKER", "readr")
    with pytest.raises(EvaluatorError, match="did you mean reader"):
        choose_parts(Environment())
    told = {one.part: one for one in examine(Environment(), use=False)}
    assert told["reranker"].state == "broken"
