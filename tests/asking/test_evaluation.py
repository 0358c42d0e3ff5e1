"""`crag evaluate`: what is read, what is right, where evidence was lost, and the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.asking.answer_judge import AnswerJudge
from crag.asking.evaluation import Question, Row, evaluate, read_questions, summarise
from crag.asking.evaluation_page import numbers, page_of
from crag.asking.lines import require_alone
from crag.errors import DataError
from crag.graph import build_crag, build_self_rag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeReflection,
    FakeRetriever,
    fake_candidate,
)
from tests.chat_server import chatting
from tests.commands import crag

KETTLE = Document("The kettle boils in three minutes.", metadata={"source": "/data/docs/kettle.md"})
LID = Document("The <lid> must be closed.", metadata={"source": "/data/docs/lid.md"})


def write(folder: Path, *rows: object) -> Path:
    path = folder / "questions.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


async def asked(question: Question, *, reply: str, score: float = 0.9) -> Row:
    parts = Parts(
        retriever=FakeRetriever(documents=[KETTLE, LID]),
        evaluator=FakeEvaluator({"kettle": score}, otherwise=-1.0),
        model=FakeChatModel(replies=[reply] * 3),
    )
    (row,) = await evaluate(build_crag(parts), [question], Settings())
    return row


HOW_LONG = Question("1", "How long does it take?", answers=("Three minutes", "180 s"))


@pytest.mark.parametrize(
    ("question", "reply", "score", "verdict", "lost"),
    [
        (HOW_LONG, "It takes three minutes [1].", 0.9, "right", ""),
        (HOW_LONG, "It takes an hour [1].", 0.9, "wrong", "not answered"),
        (HOW_LONG, "unused", -1.0, "abstained", "not kept"),
        (HOW_LONG._replace(answers=("a week",)), "Soon [1].", 0.9, "wrong", "not retrieved"),
        (Question("1", "How long?", files=("docs/kettle.md",)), "Soon [1].", 0.9, "right", ""),
        (Question("1", "How long?", files=("tea.md",)), "Soon [1].", 0.9, "wrong", "not retrieved"),
        (Question("1", "How long?"), "Soon [1].", 0.9, "unjudged", ""),
        (Question("1", "How long?", answerable=False), "Soon [1].", 0.9, "wrong", ""),
        (Question("1", "How long?", answerable=False), "unused", -1.0, "right", ""),
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
    (row,) = await evaluate(build_self_rag(parts), [HOW_LONG], Settings())
    assert (row["verdict"], row["kept"]) == ("right", True)
    assert [strip["text"] for strip in row["strips"]] == [KETTLE.page_content, LID.page_content]
    reply = '{"statements": 1, "supported": 1, "relevant": true, "agrees": true}'
    (judgement,) = await AnswerJudge(FakeChatModel(replies=[reply])).judge([row])
    assert judgement["relevant"]


async def test_a_row_tells_what_led_to_the_answer() -> None:
    row = await asked(HOW_LONG, reply="It takes three minutes [1].")
    assert row["action"] == "correct"
    assert [(one["holds"], one["score"]) for one in row["documents"]] == [(True, 0.9), (False, -1)]
    assert [citation["url"] for citation in row["citations"]] == ["/data/docs/kettle.md"]
    assert (row["retrieved"], row["kept"]) == (True, True)
    assert row["usage"]["llm_calls"] == 1


async def test_evidence_counts_where_it_is_quoted() -> None:
    quoted = HOW_LONG._replace(evidence=("the LID must be closed",))
    row = await asked(quoted, reply="It takes three minutes [1].")
    assert [one["holds"] for one in row["documents"]] == [False, True]
    quoted = HOW_LONG._replace(evidence=("kettle boils",))
    assert (await asked(quoted, reply="No [1]."))["lost"] == "not answered"


async def test_a_run_that_fails_is_a_row() -> None:
    (row,) = await evaluate(
        build_crag(
            Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), model=FakeChatModel())
        ),
        [HOW_LONG._replace(question="x" * 9000)],
        Settings(),
    )
    assert row["verdict"] == "failed"
    assert "8,000" in row["error"]
    assert summarise([row])["retrieved"] is None, "nothing was looked for"


async def test_the_summary_counts() -> None:
    rows = [
        await asked(HOW_LONG, reply="Three minutes [1]."),
        await asked(HOW_LONG, reply="An hour [1]."),
        await asked(HOW_LONG, reply="unused", score=-1.0),
        await asked(Question("4", "How long?"), reply="Soon [1]."),
    ]
    summary = summarise(rows)
    assert summary["verdicts"] == {"right": 1, "wrong": 1, "abstained": 1, "unjudged": 1}
    assert summary["actions"] == {"correct": 3, "incorrect": 1}
    assert summary["lost"] == {"not answered": 1, "not kept": 1}
    assert summary["right"] == pytest.approx(1 / 3)
    assert (summary["retrieved"], summary["kept"]) == (1.0, pytest.approx(2 / 3))
    assert numbers(summary)["right"].startswith("33% (95 % interval 6% to 79%)")
    assert summarise([])["right"] is None
    alone = numbers(summarise(rows[:1]))["right"]
    assert alone.startswith("100% (95 % interval 21% to 100%)"), "one question proves little"


async def test_the_page_shows_failures_and_runs_nothing() -> None:
    row = await asked(HOW_LONG._replace(question="How <b>long</b>?"), reply="An hour [1].")
    right = await asked(Question("2", "fine?", files=("kettle.md",)), reply="Yes [1].")
    page = page_of([row, right], summarise([row, right]), {"method": "crag"}, {})
    assert "Failures to read (1)" in page
    assert "How &lt;b&gt;long&lt;/b&gt;?" in page
    assert "The &lt;lid&gt; must be closed." in page
    assert "the reply does not have it" in page
    assert "fine?" not in page
    assert "<script" not in page
    assert "<lid>" not in page


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "line 2: it is no JSON"),
        ("[]", "line 2: write an object"),
        ({"answers": ["a"]}, "'question' is None; it must be a text"),
        ({"question": "Why?", "answers": 7}, "'answers' is 7; write a list of texts"),
        ({"question": "Why?", "answers": 0}, "'answers' is 0; write a list of texts"),
        ({"question": "Why?", "id": ["a"]}, r"'id' is \['a'\]; write a text or a number"),
        ({"question": "Why?", "files": [1]}, r"'files' is \[1\]"),
        ({"question": "Why?", "answerable": "no"}, "'answerable' is 'no'"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, row: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_questions(write(tmp_path, {"question": "Who?"}, row))


def test_lines_are_read_by_both_names(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"question": " Why? ", "answer": "because", "file": "a.md"},
        "",
        {"id": "b", "question": "Who?", "answers": ["she", ""], "answerable": False},
    )
    assert read_questions(path) == [
        Question("1", "Why?", ("because",), ("a.md",)),
        Question("b", "Who?", ("she",), answerable=False),
    ]
    assert len(read_questions(path, limit=1)) == 1
    with pytest.raises(DataError, match="it holds no question"):
        read_questions(write(tmp_path, ""))


def test_lines_end_at_line_feeds_only_and_hold_whole_characters(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    rows = ['{"question": "Why\u2028so?", "id": null}', '{"question": "Half \\ud83d?"}']
    path.write_text("\r\n".join(rows), "utf-8-sig", newline="")
    assert read_questions(path) == [Question("1", "Why\u2028so?"), Question("2", "Half \ufffd?")]


def test_questions_that_say_nothing_of_what_is_right_are_told(tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    write(tmp_path, {"question": "How long does a kettle take?", "gold": ["three minutes"]})
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    done = crag("evaluate", "questions.jsonl", folder=tmp_path)
    assert "no question says what is right: give 'answers', 'files', 'answerable'" in done.stdout


def test_the_exit_code_tells_of_questions_that_failed(tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    write(tmp_path, {"question": "x" * 9000})
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    assert crag("evaluate", "questions.jsonl", folder=tmp_path).returncode == 1


def test_the_command_writes_report_and_rows(tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    write(
        tmp_path,
        {"question": "How long does a kettle take to boil water?", "answers": ["three minutes"]},
        {"question": "Who won the chess championship of 1972?", "answers": ["Fischer"]},
    )
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    done = crag("evaluate", "questions.jsonl", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdicts"] == {"right": 1, "abstained": 1}
    assert told["lost"] == {"not retrieved": 1}
    rows = (tmp_path / "evaluation" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["verdict"] for row in rows] == ["right", "abstained"]
    assert "chess" in (tmp_path / "evaluation" / "report.html").read_text()
    shown = crag("evaluate", "questions.jsonl", "--limit", "1", "--method", "rag", folder=tmp_path)
    assert "report: evaluation/report.html" in shown.stdout
    assert "100%" in shown.stdout
    done = crag(
        "evaluate", "questions.jsonl", "--limit", "1", "--output", "kettle.md", folder=tmp_path
    )
    assert done.returncode == 2
    assert "kettle.md: the report cannot be written: File exists" in done.stderr
    judged = {"statements": 4, "supported": 3, "relevant": True, "agrees": True}
    with chatting({"statements": json.dumps(judged)}) as server:
        (tmp_path / "crag.toml").write_text(f'openai_base_url = "{server.url}"\n')
        options = ("--judge", "mine", "--limit", "1", "--json")
        done = crag("evaluate", "questions.jsonl", *options, folder=tmp_path)
    assert json.loads(done.stdout)["judge"]["supported"] == 0.75, done.stderr
    (row,) = (tmp_path / "evaluation" / "rows.jsonl").read_text().splitlines()
    assert json.loads(row)["judgement"]["agrees"] is True


@pytest.mark.parametrize("other", [True, False])
def test_rows_of_another_run_are_left_alone(other: bool, tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    write(tmp_path, {"question": "How long does a kettle take?"})
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    (tmp_path / "evaluation").mkdir()
    rows = tmp_path / "evaluation" / "rows.jsonl"
    rows.write_text('{"key": "a", "answer": "\\"verdict\\": "}\n' if other else "")
    before = rows.read_text()
    with rows.open("a") as file:
        if not other:
            require_alone(rows, file)
        done = crag("evaluate", "questions.jsonl", folder=tmp_path)
    assert done.returncode == 2
    told = "holds no rows of `crag evaluate`" if other else "another run is writing to it"
    assert told in done.stderr
    assert rows.read_text() == before
    rows.unlink()
    assert crag("evaluate", "questions.jsonl", folder=tmp_path).returncode == 0


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"questions\.jsonl.*cannot be read: No such file"):
        read_questions(tmp_path / "questions.jsonl")
    path = tmp_path / "latin.jsonl"
    path.write_bytes('{"question": "Où est-il ?"}'.encode("latin-1"))
    with pytest.raises(DataError, match="it is not in UTF-8: save it as UTF-8"):
        read_questions(path)


@pytest.mark.parametrize(
    ("judgement", "told"),
    [
        ({"supported": 0.5, "relevant": True, "agrees": None, "problem": ""},
         "supported 50%, about the question"),
        ({"supported": None, "relevant": False, "agrees": False, "problem": ""},
         "not about the question, not as a right answer"),
        ({"supported": None, "relevant": None, "agrees": None, "problem": "no reply"}, "no reply"),
    ],
)  # fmt: skip
async def test_the_page_says_what_the_judge_said(judgement: Any, told: str) -> None:
    row = await asked(HOW_LONG, reply="It takes an hour [1].")
    row["judgement"] = judgement
    assert told in page_of([row], summarise([row]), {}, {})
