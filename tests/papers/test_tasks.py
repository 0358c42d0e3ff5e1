"""What a task changes; options below a question, which the generator alone is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.graph import build_crag
from crag.papers.settings import PaperSettings
from crag.papers.tasks import (
    TASKS,
    TaskProfile,
    published_options,
    split_options,
    written,
)
from crag.parts import Parts
from crag.prompts import PACKAGED
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeRetriever,
    FakeSearcher,
)

ARC = PaperSettings(task="arc")
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
    assert split_options("\n".join(["Why?", *lines])) == ("Why?", {"A": "one", "B": "two"})


@pytest.mark.parametrize(
    ("options", "published"),
    [
        ({"A": "sun", "B": "rain"}, "\nA: sun; \nB: rain"),
        ({"1": "sun", "2": "rain"}, "1: sun; 2: rain"),
        ({"A": "a plan B: none", "E": "x"}, "\nA: a plan \nB: none; \nE: x"),
    ],
)
def test_options_as_the_official_program_writes_them(
    options: dict[str, str], published: str
) -> None:
    assert published_options(options) == published


def test_a_question_may_begin_as_an_option_does() -> None:
    found = split_options("D. E. Knuth wrote what?\nA: one\nB: two")
    assert found == ("D. E. Knuth wrote what?", {"A": "one", "B": "two"})


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
    assert split_options(question) == (question, {})


WORDS = st.from_regex(r"[a-z]{2,9}( [a-z]{2,9}){0,5}", fullmatch=True)


@given(WORDS, st.lists(WORDS, min_size=2, max_size=9))
def test_what_is_split_can_be_put_together_again(question: str, options: list[str]) -> None:
    labelled = dict(zip("ABCDEFGHI", options, strict=False))
    whole = f"{question}?\n{written(labelled)}"
    assert split_options(whole) == (f"{question}?", labelled)


def test_instructions_of_the_tasks() -> None:
    assert TASKS["default"].instruction_for("Who?") == "Who?"
    assert TASKS["biography"].instruction_for("Tell me.") == "Tell me."
    assert TASKS["pubhealth"].instruction_for("Tea heals.") == (
        "Is the following statement correct or not? Say true if it's correct; otherwise say false."
        "\n\n## Input:\n\nTea heals."
    )
    asqa = TASKS["asqa"].instruction_for("Who?")
    assert asqa.endswith("including all correct answers.## Input:\n\nWho?")
    assert asqa.startswith("Answer the following question. The question may be ambiguous")


def test_choices_of_arc_are_lettered_padded_and_cut() -> None:
    head = (
        "Given four answer candidates, A, B, C and D, choose the best answer choice."
        "\n\n### Input:\nWhy?"
    )
    arc = TASKS["arc"]
    assert arc.instruction_for("Why?") == head
    numbered = arc.instruction_for("Why?", {"1": "a", "2": "b", "3": "c"})
    assert numbered == f"{head}\nA: a\nB: b\nC: c\nD: "
    five = dict(zip("ABCDE", "vwxyz", strict=True))
    assert arc.instruction_for("Why?", five) == f"{head}\nA: v\nB: w\nC: x\nD: y"


def test_a_run_asks_for_the_question_alone_and_keeps_what_was_asked() -> None:
    retriever, evaluator = FakeRetriever(documents=[DOCUMENT]), FakeEvaluator(0.0)
    searcher, model = FakeSearcher(), FakeChatModel(replies=["mass", "B"])
    parts = Parts(retriever=retriever, evaluator=evaluator, model=model, searcher=searcher)
    state = build_crag(parts).invoke({"question": QUESTION}, context=ARC)
    assert (state["question"], state["asked"]) == (STEM, QUESTION)
    assert retriever.questions == [STEM]
    assert {question for question, _ in evaluator.calls} == {STEM}
    assert "ruler" not in str(model.prompts[0])
    assert "A: ruler\nB: balance" in str(model.prompts[1][0].content)


@pytest.mark.parametrize("profile", TASKS.values(), ids=TASKS)
def test_every_prompt_of_a_profile_is_there(profile: TaskProfile) -> None:
    filled = {"question": "Q", "knowledge": "K", "options": "O", "not_found": "N"}
    assert "K" in str(PACKAGED.render(profile.answer_prompt, **filled))
    assert "Q" in str(PACKAGED.render(profile.rewrite_prompt, question="Q"))
    assert "Q" in str(PACKAGED.render(profile.own_prompt, **filled))
