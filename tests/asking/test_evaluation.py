"""`crag evaluate`: what is read, what is right, and where evidence was lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.api import Graph
from crag.asking.evaluate import judged, summarise
from crag.asking.many import Question, Row, ask, read_questions
from crag.errors import DataError
from crag.graph import build_crag, build_self_rag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeReflection, FakeRetriever, fake_candidate
from tests.commands import crag

KETTLE = Document("The kettle boils in three minutes.", metadata={"source": "/data/docs/kettle.md"})
LID = Document("The <lid> must be closed.", metadata={"source": "/data/docs/lid.md"})


def write(folder: Path, *rows: object) -> Path:
    path = folder / "questions.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


async def evaluated(graph: Graph, question: Question) -> Row:
    return judged(question, *await ask(graph, question, Settings()))


async def asked(question: Question, *, reply: str, score: float = 0.9) -> Row:
    parts = Parts(
        retriever=FakeRetriever(documents=[KETTLE, LID]),
        evaluator=FakeEvaluator({"kettle": score}, otherwise=-1.0),
        model=FakeChatModel(replies=[reply] * 3),
    )
    return await evaluated(build_crag(parts), question)


def how_long(**values: Any) -> Question:
    return Question.model_validate({"id": "1", "question": "How long?"} | values)


HOW_LONG = Question(id="1", question="How long does it take?", answers=("Three minutes", "180 s"))


def changed(**values: Any) -> Question:
    return HOW_LONG.model_copy(update=values)


@pytest.mark.parametrize(
    ("question", "reply", "score", "verdict", "lost"),
    [
        (HOW_LONG, "It takes three minutes [1].", 0.9, "right", ""),
        (HOW_LONG, "It takes an hour [1].", 0.9, "wrong", "not answered"),
        (HOW_LONG, "unused", -1.0, "abstained", "not kept"),
        (changed(answers=("a week",)), "Soon [1].", 0.9, "wrong", "not retrieved"),
        (how_long(files=("docs/kettle.md",)), "Soon [1].", 0.9, "right", ""),
        (how_long(files=("tea.md",)), "Soon [1].", 0.9, "wrong", "not retrieved"),
        (how_long(), "Soon [1].", 0.9, "unjudged", ""),
        (how_long(answerable=False), "Soon [1].", 0.9, "wrong", ""),
        (how_long(answerable=False), "unused", -1.0, "right", ""),
    ],
)
async def test_what_is_right_and_where_evidence_is_lost(
    question: Question, reply: str, score: float, verdict: str, lost: str
) -> None:
    row = await asked(question, reply=reply, score=score)
    assert (row["verdict"], row["lost"]) == (verdict, lost)


async def test_what_reflection_read_was_kept_and_is_judged() -> None:
    reflection = FakeReflection(lambda *_: fake_candidate("The kettle boils in three minutes."))
    parts = Parts(
        retriever=FakeRetriever(documents=[KETTLE, LID]),
        evaluator=FakeEvaluator(),
        model=FakeChatModel(),
        reflection=reflection,
    )
    row = await evaluated(build_self_rag(parts), HOW_LONG)
    assert (row["verdict"], row["kept"]) == ("right", True)
    assert [strip["text"] for strip in row["strips"]] == [KETTLE.page_content, LID.page_content]


async def test_evidence_counts_where_it_is_quoted() -> None:
    quoted = changed(evidence=("the LID must be closed",))
    row = await asked(quoted, reply="It takes three minutes [1].")
    assert (row["retrieved"], row["kept"]) == (True, False)
    quoted = changed(evidence=("kettle boils",))
    assert (await asked(quoted, reply="No [1]."))["lost"] == "not answered"


async def test_a_run_that_fails_is_a_row() -> None:
    parts = Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), model=FakeChatModel())
    row = await evaluated(build_crag(parts), changed(question="x" * 9000))
    assert row["verdict"] == "failed"
    assert "8,000" in row["error"]
    assert summarise([row])["retrieved"] is None, "nothing was looked for"


async def test_the_summary_counts() -> None:
    rows = [
        await asked(HOW_LONG, reply="Three minutes [1]."),
        await asked(HOW_LONG, reply="An hour [1]."),
        await asked(HOW_LONG, reply="unused", score=-1.0),
        await asked(Question(id="4", question="How long?"), reply="Soon [1]."),
    ]
    summary = summarise(rows)
    assert summary["verdicts"] == {"right": 1, "wrong": 1, "abstained": 1, "unjudged": 1}
    assert summary["actions"] == {"correct": 3, "incorrect": 1}
    assert summary["lost"] == {"not answered": 1, "not kept": 1}
    assert summary["right"] == pytest.approx(1 / 3)
    assert (summary["retrieved"], summary["kept"]) == (1.0, pytest.approx(2 / 3))
    assert summarise([])["right"] is None


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", r"line 2: the line: Invalid JSON: .*; write lines such as {\"question\""),
        ({"id": "1", "question": "Why?"}, "line 2: another line has the id '1': give each"),
        ("[]", "line 2: the line: Input should be an object"),
        ({"answers": ["a"]}, "question: Field required"),
        ({"question": " "}, "question: String should have at least 1 character"),
        ({"question": "Why?", "answers": 7}, "answers: Input should be a valid array"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, row: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_questions(write(tmp_path, {"question": "Who?"}, row))


def test_lines_end_at_line_feeds_and_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    rows = ['{"question": " Why\u2028so? ", "files": ["a.md"]}', "",
            '{"id": 7, "question": "Who?", "answers": ["she"]}']  # fmt: skip
    path.write_text("\r\n".join(rows), "utf-8-sig", newline="")
    assert read_questions(path) == [
        Question(id="1", question="Why\u2028so?", files=("a.md",)),
        Question(id="7", question="Who?", answers=("she",)),
    ]
    with pytest.raises(DataError, match="it holds no question"):
        read_questions(write(tmp_path, ""))


def test_the_command_writes_rows_and_tells_where_failures_were_lost(tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    write(
        tmp_path,
        {"question": "How long does a kettle take to boil water?", "answers": ["three minutes"]},
        {"question": "Who won the chess championship of 1972?", "answers": ["Fischer"]},
        {"question": "x" * 9000},
    )
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    done = crag("evaluate", "questions.jsonl", "--json", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["verdicts"] == {"right": 1, "abstained": 1, "failed": 1}
    assert told["lost"] == {"not retrieved": 1}
    rows = map(json.loads, (tmp_path / "evaluation.jsonl").read_text().splitlines())
    verdicts = {row["id"]: row["verdict"] for row in rows}
    assert list(verdicts.items()) == [("1", "right"), ("2", "abstained"), ("3", "failed")]
    shown = crag("evaluate", "questions.jsonl", "--output", "runs/two.jsonl", folder=tmp_path)
    assert "abstained, not retrieved: Who won the chess championship of 1972? (2)" in shown.stdout
    assert "right: 0.3333" in shown.stdout
    before = (tmp_path / "evaluation.jsonl").read_bytes()
    for command in (["evaluate"], ["batch", "--output", "answers.jsonl"]):
        lacking = crag(*command, "questions.jsonl", "--index", "nowhere", folder=tmp_path)
        assert lacking.returncode == 2, lacking.stderr
        absent = crag(*command, "absent.jsonl", "--json", folder=tmp_path)
        message = json.loads(absent.stdout)["error"]["message"]
        assert message == "absent.jsonl: No such file or directory"
    write(tmp_path, {"question": "How long does a kettle take to boil water?", "answer": "three"})
    shown = crag("evaluate", "questions.jsonl", "--output", "runs/two.jsonl", folder=tmp_path)
    assert "no question says what is right" in shown.stdout
    assert not (tmp_path / "answers.jsonl").exists()
    assert (tmp_path / "evaluation.jsonl").read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".crag-")]
