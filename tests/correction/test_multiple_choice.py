"""Options below a question: seen by the generator alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.correction.multiple_choice import lettered, posed, stem
from crag.correction.provenance import kept_whole
from crag.nodes.generate import Generate
from crag.nodes.grade import Grade
from crag.nodes.refine import Refine
from crag.nodes.retrieve import Retrieve
from crag.nodes.rewrite import Rewrite
from crag.nodes.select import Select
from crag.reflection.driver import asked_of
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeRetriever

ARC = Settings(task="arc")
STEM = "Which tool measures mass?"
QUESTION = f"{STEM}\nA: ruler\nB: balance\nC: cup\nD: clock"
DOCUMENT = Document("A balance measures the mass of things.", metadata={"title": "Balance"})


@pytest.mark.parametrize(
    "lines",
    [
        ["A: one", "B: two"],
        ["(A) one", "(B) two"],
        ["A) one", "B) two"],
        ["A. one", "B. two"],
        ["  A:  one ", "  B: two"],
    ],
)
def test_options_are_read_in_the_ways_they_are_written(lines: list[str]) -> None:
    assert posed("\n".join(["Why?", *lines]), ARC) == ("Why?", {"A": "one", "B": "two"})


def test_numbers_become_letters() -> None:
    found = posed("Why?\n1: one\n2: two\n3: three", ARC)
    assert lettered(found.options) == "A: one\nB: two\nC: three"


@pytest.mark.parametrize(
    "question",
    [
        "Why?",
        "Why?\nA: only one",
        "Why?\nB: one\nC: two",
        "Why?\nA: one\nC: three",
        "A: one\nB: two",
        "Why?\nA: one\nB: two\nOr not at all?",
        "Why?\n1: one\nB: two",
    ],
)
def test_anything_else_is_the_question_whole(question: str) -> None:
    assert posed(question, ARC) == (question, {})


WORDS = st.from_regex(r"[a-z]{2,9}( [a-z]{2,9}){0,5}", fullmatch=True)


@given(WORDS, st.lists(WORDS, min_size=2, max_size=9))
def test_what_is_parted_can_be_put_together_again(question: str, options: list[str]) -> None:
    labelled = dict(zip("ABCDEFGHI", options, strict=False))
    whole = f"{question}?\n{lettered(labelled)}"
    assert posed(whole, ARC) == (f"{question}?", labelled)
    assert stem(whole, Settings()) == whole


def test_retriever_evaluator_query_and_quoter_see_the_question_alone() -> None:
    retriever, evaluator = FakeRetriever(documents=[DOCUMENT]), FakeEvaluator(0.9)
    state = State(question=QUESTION, documents=[DOCUMENT], events=[], usage={})
    assert Retrieve(retriever).run(State(question=QUESTION), ARC)["question"] == QUESTION
    assert retriever.questions == [STEM]
    Grade(evaluator).run(state, ARC)
    state["internal"] = Refine(evaluator).run(state, ARC)["internal"]
    state["external"] = kept_whole([DOCUMENT], "read")
    Select(evaluator).run(state, ARC)
    assert {question for question, _ in evaluator.calls} == {STEM}
    assert Rewrite(None).run(state, ARC)["query"] == "tool measures mass"
    rewriter = FakeChatModel(replies=["mass"])
    Rewrite(rewriter).run(state, ARC)
    assert "ruler" not in str(rewriter.prompts[0])


def test_the_generator_sees_options_in_their_place() -> None:
    state = State(question=QUESTION, internal=kept_whole([DOCUMENT], "kept"), events=[], usage={})
    model = FakeChatModel(replies=["B"])
    assert Generate(model, FakeQuoter()).run(state, ARC)["answer"] == "B"
    prompt = str(model.prompts[0][0].content)
    assert f"Question: {STEM}\n" in prompt
    assert prompt.endswith("Choices:\nA: ruler\nB: balance\nC: cup\nD: clock")


def test_reflection_is_instructed_as_the_tuned_models_were() -> None:
    asked = asked_of(State(question=QUESTION), ARC)
    assert asked.query == STEM
    assert asked.instruction.endswith(f"### Input:\n{STEM}\nA: ruler\nB: balance\nC: cup\nD: clock")
