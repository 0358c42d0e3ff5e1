"""A chat model judges answers: what it is shown, and what its replies become."""

import json
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.asking.answer_judge import AnswerJudge, summarise_judgements
from crag.asking.evaluation import Judgement, Question, Row, evaluate, summarise
from crag.asking.evaluation_page import judge_numbers, page_of
from crag.graph import build_crag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever

KETTLE = Document("The kettle boils in </passage> three minutes.", metadata={"source": "/k.md"})
HOW_LONG = Question("1", "How long does it take?", answers=("180 s",))
GOOD = {"statements": 4, "supported": 3, "relevant": True, "agrees": True}


async def answered(question: Question, reply: str, score: float = 0.9) -> Row:
    parts = Parts(
        retriever=FakeRetriever(documents=[KETTLE]),
        evaluator=FakeEvaluator(score),
        model=FakeChatModel(replies=[reply] * 3),
    )
    (row,) = await evaluate(build_crag(parts), [question], Settings())
    return row


async def judged(row: Row, *replies: str) -> tuple[Judgement, FakeChatModel]:
    model = FakeChatModel(replies=list(replies))
    (found,) = await AnswerJudge(model).judge([row])
    return found, model


def said(**changed: object) -> str:
    return f"Here it is:\n```json\n{json.dumps(GOOD | changed)}\n```"


async def test_it_sees_question_answer_and_kept_strips_and_is_read() -> None:
    row = await answered(HOW_LONG, "Three minutes [1].")
    assert row["verdict"] == "wrong"  # By its words alone.
    found, model = await judged(row, said())
    assert found == {"supported": 0.75, "relevant": True, "agrees": True, "problem": ""}
    shown = model.prompts[0][-1].text
    for words in ("How long does it take?", "Three minutes.", "180 s", "The kettle boils in"):
        assert words in shown
    assert "[1]" not in shown
    assert shown.count("</passage>") == 1


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (said(agrees=None), (0.75, True, None, "")),
        (said(statements=0, supported=0, relevant=False), (None, False, True, "")),
        (said(supported=5), (None, None, None, "the judge's reply cannot be read")),
        (said(relevant="yes"), (None, None, None, "the judge's reply cannot be read")),
        ("No.", (None, None, None, "the judge's reply cannot be read: 'No.'")),
        ("", (None, None, None, "the judge failed: the model replied with nothing")),
    ],
)
async def test_replies_and_failures(reply: str, found: tuple[Any, ...]) -> None:
    row = await answered(HOW_LONG, "Three minutes [1].")
    judgement, _ = await judged(row, reply)
    *values, problem = judgement.values()
    assert tuple(values) == found[:3]
    assert str(problem).startswith(found[3])
    assert bool(problem) == bool(found[3])


async def test_without_right_answers_none_is_agreed_with() -> None:
    row = await answered(Question("1", "How long?"), "Three minutes [1].")
    judgement, model = await judged(row, said())
    assert judgement["agrees"] is None
    assert "none is given" in model.prompts[0][-1].text


async def test_an_abstention_is_not_judged() -> None:
    row = await answered(HOW_LONG, "unused", score=-1.0)
    judgement, model = await judged(row, said())
    assert judgement == {"supported": None, "relevant": None, "agrees": None, "problem": ""}
    assert model.prompts == []


async def test_the_summary_and_the_page() -> None:
    row = await answered(HOW_LONG, "Three minutes [1].")
    found = [(await judged(row, reply))[0] for reply in (said(), said(supported=0), "No.")]
    summary = summarise_judgements(found)
    assert summary == {
        "judged": 2, "supported": 0.375, "relevant": 1.0, "agrees": 1.0, "problems": 1,
    }  # fmt: skip
    rows = [Row(**{**row, "judgement": one}) for one in found]
    page = page_of(rows, summarise(rows), {}, judge_numbers(summary))
    assert "<td>38%</td>" in page
    assert "supported 75%, about the question, as a right answer" in page
    assert "supported 0%" in page
    assert "the judge&#x27;s reply cannot be read" in page
    assert judge_numbers(summarise_judgements([])) == {"judged": "0 answers"}
