"""`crag bench`: from a file of questions to a report, with errors that say what to do."""

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from crag.errors import CragError
from crag.papers.cli import app
from tests.papers.bench.runs import ChatServer, chatting, questions

EXPERIMENT = """
[small]
name = "Small"
task = "popqa"
baseline = "rag"
metrics = ["match", "llm_calls"]

[[small.variant]]
name = "rag"
method = "rag"

[[small.variant]]
name = "crag"
method = "crag"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


def crag(folder: Path, *options: str, url: str = "") -> Result:
    (folder / "small.toml").write_text(EXPERIMENT, encoding="utf-8")
    environment = {"COLUMNS": "300"}
    if url:
        environment |= {"OPENAI_BASE_URL": url, "CRAG_MODEL": "m", "CRAG_EVALUATOR": "chat-direct"}
        environment |= {"OPENAI_API_KEY": "none"}
    command = ["bench", "small.toml", "--data", str(questions(folder)), "--output", "out"]
    with chdir(folder):
        runner = CliRunner()
        return runner.invoke(app, [*command, *options], env=environment, catch_exceptions=False)


def test_a_run_leaves_rows_and_a_report_and_goes_on(tmp_path: Path, server: ChatServer) -> None:
    done = crag(tmp_path, "--limit", "2", url=server.url)
    assert "4 rows written, 0 were there, 0 failed" in done.stdout
    done = crag(tmp_path, url=server.url)
    assert done.exit_code == 0, done.stderr
    assert "| rag | 75.0 % (25.0 to 100.0) | 1.00 (1.00 to 1.00) |" in done.stdout
    assert "4 rows written, 4 were there, 0 failed" in done.stdout
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| data | questions.jsonl (SHA-256 " in report
    assert len((tmp_path / "out" / "rows.jsonl").read_text().splitlines()) == 8
    assert str(tmp_path) not in report


def test_the_exit_code_tells_of_rows_that_failed_or_could_not_be_run(tmp_path: Path) -> None:
    with chatting() as broken:
        broken.failing = "boat"
        assert crag(tmp_path, url=broken.url).exit_code == 1
        broken.failing = ""
        done = crag(tmp_path, url=broken.url)
        assert "2 rows written, 6 were there, 0 failed" in done.stdout
        assert done.exit_code == 0
    text = (tmp_path / "small.toml").read_text("utf-8").partition("[[small.variant]]")[0]
    text += '[[small.variant]]\nname = "rag"\nmethod = "no_retrieval"\n'
    (tmp_path / "one.toml").write_text(text)
    command = ["bench", tmp_path / "one.toml", "--data", tmp_path / "questions.jsonl"]
    words = [*map(str, command), "--output", str(tmp_path / "none")]
    assert CliRunner().invoke(app, words).exit_code == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "k=0"], "setting 'k' cannot be '0'"),
        (["--web", "missing.jsonl"], "missing.jsonl: cannot be read"),
        (["--fact-judge", "m"], "give both, a chat model and JSONL files of titles and texts"),
        (["--mauve", "llama"], "which must contain gpt2 or bert"),
        (["--entailment", "no/such/folder"], "cannot be loaded"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(
    tmp_path: Path, server: ChatServer, options: list[str], told: str
) -> None:
    before = len(server.prompts)
    with pytest.raises(CragError, match=re.escape(told)):
        crag(tmp_path, *options, url=server.url)
    assert len(server.prompts) == before
