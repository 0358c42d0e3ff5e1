"""`crag batch` asks each question once, and goes on where it ended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Done, crag
from tests.loopback import Loopback, completion, serving

CORRECT = ("--set", "upper=-100", "--set", "lower=-100")
"""Every question gets this action."""
QUESTIONS = [
    "Who wrote the first program?",
    "Who published the first program?",
    "Who was the first to write one?",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    texts = folder / "texts"
    texts.mkdir()
    (texts / "ada.md").write_text("# Ada\n\nAda Lovelace wrote the first published program.\n")
    (texts / "engine.md").write_text("# Engine\n\nCharles Babbage designed the engine.\n")
    done = crag("index", texts, "--index", folder / "index", "--json")
    assert done.returncode == 0, done.stderr
    return folder / "index"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(completion("Ada Lovelace did [1].", (1000, 10))) as running:
        yield running


class Batch:
    """The command with its files."""

    def __init__(self, folder: Path, index: Path, server: Loopback) -> None:
        self.questions, self.output = folder / "questions.jsonl", folder / "answers.jsonl"
        self.ask(*QUESTIONS)
        self._options = ("--index", index, *CORRECT, "--concurrency", "1")
        self.environment = {
            "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "CRAG_MODEL": "m",
        }  # fmt: skip

    def ask(self, *questions: str) -> None:
        lines = [json.dumps({"question": one, "id": f"q{i}"}) for i, one in enumerate(questions)]
        self.questions.write_text("\n".join(lines))

    def done(self, *options: str | Path) -> Done:
        return crag(
            "batch", self.questions, "--output", self.output, *self._options, *options,
            environment=self.environment,
        )  # fmt: skip

    def shown(self, *options: str | Path) -> str:
        return self.done(*options).stdout

    def run(self, *options: str | Path) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.shown("--json", *options))
        return told

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.read_text().splitlines()]


@pytest.fixture
def batch(tmp_path: Path, index: Path, server: Loopback) -> Batch:
    return Batch(tmp_path, index, server)


def test_answers_are_written_with_what_they_rest_on(batch: Batch, server: Loopback) -> None:
    told = batch.run()
    assert (told["questions"], told["answered_before"]) == (3, 0)
    assert told["outcomes"] == {"answered": 3}
    assert len(server.requests) == told["usage"]["llm_calls"] == 3
    rows = batch.rows()
    assert {row["id"]: row["question"] for row in rows} == dict(
        zip(("q0", "q1", "q2"), QUESTIONS, strict=True)
    )
    assert rows[0]["citations"][0]["source"]["url"].endswith(".md")
    assert rows[0]["action"] == "correct"
    shown = batch.shown("--output", str(batch.output)).splitlines()
    assert shown[1:3] == ["answered before: 3", "outcomes: 3 answered"]
    assert shown[-1] == f"output: {batch.output}"


def test_what_was_answered_is_not_asked_again(batch: Batch, server: Loopback) -> None:
    batch.ask(*QUESTIONS[:2])
    batch.run()
    whole = batch.output.read_bytes()
    batch.output.write_bytes(whole + b'{"id": "cut off by a k')  # As a killed run leaves it.
    batch.ask(*QUESTIONS)
    told = batch.run()
    assert (told["answered_before"], told["outcomes"]) == (2, {"answered": 3})
    assert batch.output.read_bytes().startswith(whole)
    assert len(batch.rows()) == 3
    assert len(server.requests) == 3


def test_what_failed_or_lacked_a_part_is_asked_again(batch: Batch, server: Loopback) -> None:
    batch.ask(QUESTIONS[0], QUESTIONS[1], "x" * 200_000)
    server.statuses = [401]
    done = batch.done("--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["part_failed"], told["outcomes"]["failed"]) == (1, 1, 1)
    (failed,) = [row for row in batch.rows() if row["error"]]
    assert failed["error"].startswith("QuestionError")
    told = batch.run()
    assert (told["answered_before"], told["part_failed"]) == (1, 0)


def test_answers_of_other_settings_are_not_mixed(batch: Batch) -> None:
    batch.run()
    written = batch.output.read_bytes()
    for changed in ({"CRAG_EVALUATOR": "reader"}, {"TAVILY_API_KEY": "tvly-another"}):
        before, batch.environment = batch.environment, batch.environment | changed
        assert "other parts" in batch.run()["error"]["message"]
        batch.environment = before
    told = batch.run("--set", "k=3")
    assert "other settings" in told["error"]["message"]
    assert batch.output.read_bytes() == written


@pytest.mark.parametrize("mine", ['{"key": "mine"}\n', '{"key": "mine"}', "My notes."])
def test_a_file_of_something_else_is_left_alone(batch: Batch, mine: str) -> None:
    batch.output.write_text(mine)
    assert "not an answer of `crag batch`" in batch.run()["error"]["message"]
    assert batch.output.read_text() == mine
