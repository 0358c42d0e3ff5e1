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
from crag.papers.reader.rows import ReadingRow
from tests.loopback import Loopback, serving
from tests.openai_replies import completion
from tests.reflective import articles, written

JUDGE = "You check whether a passage answers a question. You reply with Yes or No."
PARTS = ("lever", "lamp", "barrel", "hose", "lid", "valve")
LIKELY = {"Yes": -0.1, " no": -2.6, "No": -2.4, "Maybe": -5.0}


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
    told = call(folder, server, "--each", 20)
    rows = read_records(folder / "questions.jsonl", AskedRow)
    assert told["rows"] == len(rows)
    assert told["kinds"] == dict.fromkeys(("plain", "other", "search"), len(PARTS))
    assert {row.source for row in rows} == {f"{part}.md" for part in PARTS}
    for row in rows:
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
    call(folder, server, "--each", 20)
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


def test_question_sets_become_rows(tmp_path: Path) -> None:
    data = written(tmp_path / "squad.jsonl", articles(24))
    dev = written(tmp_path / "dev.jsonl", articles(24)[:4])
    output = tmp_path / "rows.jsonl"
    told = train("reader-data", data, "--dev", dev, "--output", output)
    rows = read_records(output, ReadingRow)
    assert told["rows"] == len(rows) == sum(told["sources"].values())
    left_out = {row["title"] for row in articles(24)[:4]}
    assert not left_out & {row.title for row in rows if row.source != "elsewhere"}
    train("reader-data", data, "--dev", dev, "--output", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == output.read_text()
    few = train("reader-data", data, "--each", 3, "--output", tmp_path / "few.jsonl")
    assert set(few["sources"].values()) == {3}
    mixing = ["--with", output, "--most", 3, "--output", tmp_path / "mixed.jsonl"]
    assert train("reader-data", data, *mixing)["rows"] == 3 + len(rows)
