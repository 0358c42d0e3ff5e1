"""`crag train questions`, with a server on loopback that writes and judges, and `reader-data`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crag.errors import ModelError, TrainingError
from crag.papers.cli import app
from crag.papers.loading.records import ledger_of, read_records
from crag.papers.reader.asked import AskedRow
from crag.papers.reader.question_sets import HELD_OUT
from crag.papers.reader.rows import ReadingRow
from tests.loopback import Loopback, serving
from tests.openai_replies import completion
from tests.reflective import written

JUDGE = "You check whether a passage answers a question. You reply with Yes or No."
PARTS = ("lever", "lamp", "barrel", "hose", "lid", "valve")
LIKELY = {"Yes": -0.1, " no": -2.6, "No": -2.4, "Maybe": -5.0}

TEXT = "The mill was built in 1700. It burned in 1810. Ann Miller owned it then."
PASSAGE = {"title": "Old Mill", "text": TEXT}


def replied(sent: dict[str, Any]) -> dict[str, Any]:
    """Write questions about the part that is named, and judge by `LIKELY`."""
    asked = sent["messages"][-1]["content"]
    if sent["messages"][0]["content"] == JUDGE:
        return judged(LIKELY)
    part = next(part for part in PARTS if f"the {part} " in asked)
    return completion(
        f"QUESTION: How long is the {part} of the pump under water?\n"
        f"SAME IN OTHER WORDS: when can I take the {part} out again\nSEARCH: {part} pump water"
    )


def judged(likely: dict[str, float]) -> dict[str, Any]:
    listed = [{"token": token, "logprob": p, "bytes": None} for token, p in likely.items()]
    own = {**listed[0], "top_logprobs": listed} if listed else None
    reply = completion("Yes")
    reply["choices"][0]["logprobs"] = {"content": [own]} if own else None
    return reply


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(replied) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A list of one package, which has been fetched."""
    package = {"name": "pump", "file": "pump-1.tar.gz", "sha256": "0" * 64, "licence": "MIT"}
    (tmp_path / "packages.json").write_text(json.dumps([package]))
    docs = tmp_path / "fetched" / "pump"
    docs.mkdir(parents=True)
    for number, part in enumerate(PARTS):
        page = f"Keep the {part} of the pump under water for {number} hours after the rain.\n"
        filler = "1 2 3 4 5 6 7.\n" * 8
        (docs / f"{part}.md").write_text(f"# The {part}\n\n{page}\n{filler}")
    return tmp_path


def train(*arguments: object) -> dict[str, Any]:
    given = ["train", *map(str, arguments), "--json"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def call(folder: Path, server: Loopback, *arguments: object) -> dict[str, Any]:
    return train(
        "questions", folder / "packages.json", "--fetched", folder / "fetched",
        "--output", folder / "questions.jsonl", "--url", f"{server.url}/v1", *arguments,
    )  # fmt: skip


def test_passages_get_questions_with_scores_and_rivals(folder: Path, server: Loopback) -> None:
    text = "Ada Lovelace looked at the barrel in London, long before she wrote about engines."
    other = "The composer of the waltz looked at pianos and at the barrel of an organ in Vienna."
    articles = [{"title": "Ada", "text": text}, {"title": "Organ", "text": other}]
    corpus = written(folder / "wikipedia.jsonl", articles)
    told = call(folder, server, "--wikipedia", corpus, "--articles", 1, "--each", 20)
    rows = read_records(folder / "questions.jsonl", AskedRow)
    own = [row for row in rows if row.package == "pump"]
    assert told["rows"] == len(rows)
    assert told["kinds"] == dict.fromkeys(("plain", "other", "search"), len(PARTS) + 1)
    assert {row.source for row in own} == {f"{part}.md" for part in PARTS}
    for row in own:
        part = row.source.removesuffix(".md")
        assert row.text[slice(*row.unit)].startswith(f"Keep the {part} ")
        assert [(q.kind, q.score) for q in row.questions] == [
            ("plain", None), ("other", 2.3), ("search", None)
        ]  # fmt: skip
        assert all(f"the {part} " not in rival.text for rival in row.rivals)
        assert row.rivals
    writing = [one for one in server.requests if one["messages"][0]["content"] != JUDGE]
    assert len(writing) == len(rows)
    assert {(one["temperature"], one["top_k"], one["model"]) for one in writing} == {
        (0.6, 20, "local")
    }
    assert not ledger_of(folder / "questions.jsonl").exists()
    before = (folder / "questions.jsonl").read_bytes()
    call(folder, server, "--wikipedia", corpus, "--articles", 1, "--each", 20)
    assert (folder / "questions.jsonl").read_bytes() == before


def test_an_interrupted_run_goes_on(folder: Path, server: Loopback) -> None:
    server.statuses = [200] * 6 + [400] * 99
    server.failure = {"error": {"message": "out of order"}}
    with pytest.raises(ModelError, match=r"model local: .*out of order"):
        call(folder, server, "--concurrency", 1)
    assert not (folder / "questions.jsonl").exists()
    server.statuses = []
    server.requests.clear()
    call(folder, server)
    assert len(server.requests) == 2 * (len(PARTS) - 3)
    assert len(read_records(folder / "questions.jsonl", AskedRow)) == len(PARTS)
    assert not ledger_of(folder / "questions.jsonl").exists()


@pytest.mark.parametrize("likely", [{}, {"Yes": -0.1}])
def test_a_server_without_log_probabilities_is_named(
    folder: Path, server: Loopback, likely: dict[str, float]
) -> None:
    server.body = lambda sent: judged(likely) if sent.get("logprobs") else replied(sent)
    with pytest.raises(TrainingError, match=r"'local' gives no log-probabilities \(top_logprobs\)"):
        call(folder, server)


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Write one or two rows of each question set."""
    built = {"text": "1700", "start": TEXT.index("1700")}
    paragraph = PASSAGE | {"questions": [{"question": "When was it built?", "answers": [built]}]}
    other = {"title": "Old Mill", "text": "Rain fell in 1920. It was cold.", "questions": []}
    held = paragraph | {"title": HELD_OUT[0]}
    sections = [
        {"question": question, "text": text}
        for question, text in (("What is flu?", "A fever."), ("Is it rare?", "No, it is common."))
    ]
    sentences = {
        "question": "When was it built?", "answers": ["1700"],
        "documents": [
            {"title": "Old Mill", "text": "It was built in 1700.", "answer": True},
            {"title": "Old Mill", "text": "It burned.", "answer": False},
        ],
    }  # fmt: skip
    asked = {
        "question": "Who owned it?", "answers": ["Ann Miller"],
        "documents": [PASSAGE | {"gold": True, "answer": True},
                      PASSAGE | {"text": "Rain fell.", "gold": False, "answer": False}],
    }  # fmt: skip
    rows: dict[str, list[Any]] = {
        "reading/squad_train": [paragraph, other],
        "reading/squad2_unanswerable": [paragraph, held],
        "reading/policyqa": [paragraph, paragraph | {"title": "Site", "text": f"{TEXT} Ads."}],
        "reading/medquad": [{"title": "Flu", "sections": sections}] * 2,
        "reading/timeqa": [{"question": "Who owned it in 1810?", "passages": [PASSAGE]}],
        "reading/fitz": [{"question": "Why?", "label": "absent", "passages": [PASSAGE]}],
        "qa/popqa_train": [asked],
        "qa/nq_train": [asked],
        "qa/selqa_sentences": [sentences],
        "qa/qed_sentences": [sentences],
        "evaluator/train": [PASSAGE | {"question": "Who?", "label": 1, "source": "popqa"}],
    }
    for name, lines in rows.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path / f"{name}.jsonl", lines)
    return tmp_path


def test_question_sets_become_rows_with_what_they_know(sets: Path) -> None:
    output = sets / "rows.jsonl"
    told = train("reader-data", sets, "--output", output)
    rows = read_records(output, ReadingRow)
    assert told["rows"] == len(rows) == sum(told["sources"].values())
    assert {"squad", "squad_removed", "squad2", "medquad", "timeqa_other", "fitz", "popqa", "nq",
            "selqa", "selqa_removed", "qed", "entities"} <= set(told["sources"])  # fmt: skip
    (right,) = [row for row in rows if row.source == "squad"]
    assert right.span is not None
    assert right.text[slice(*right.span)] == "1700"
    assert all("1700" not in row.text for row in rows if row.source == "squad_removed")
    assert {row.title for row in rows if row.source == "squad2"} <= {"Old Mill", ""}
    assert all(row.answer is None for row in rows if row.source == "entities")
    train("reader-data", sets, "--output", sets / "again.jsonl")
    assert (sets / "again.jsonl").read_text() == output.read_text()
    mixed = sets / "mixed.jsonl"
    assert train("reader-data", sets, "--with", output, "--most", 3, "--output", mixed)[
        "rows"
    ] == 3 + len(rows)
