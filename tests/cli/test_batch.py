"""`crag batch` asks each question once, tells what that cost, and goes on where it ended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crag.evaluators import packaged_reader
from crag.papers.training.artefacts import write_card
from tests.commands import Done, crag
from tests.loopback import Loopback, serving
from tests.openai_replies import completion
from tests.trained import tiny_bert

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
        self._options = ("--index", index, "--set", "only=correct", "--concurrency", "1")
        self.environment = {
            "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "CRAG_MODEL": "m",
            "CRAG_EVALUATOR": "cosine",
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


def test_answers_are_written_and_their_cost_is_told(batch: Batch, server: Loopback) -> None:
    told = batch.run("--prices", "2,10")
    assert (told["questions"], told["resumed"], told["stopped"]) == (3, 0, "")
    assert told["statuses"] == {"answered": 3}
    assert told["usage"]["cost"] == pytest.approx(3 * (1000 * 2 + 10 * 10) / 1e6)
    assert len(server.requests) == told["usage"]["llm_calls"] == 3
    rows = batch.rows()
    assert {row["id"]: row["question"] for row in rows} == dict(
        zip(("q0", "q1", "q2"), QUESTIONS, strict=True)
    )
    assert rows[0]["citations"][0]["url"].endswith(".md")
    assert rows[0]["action"] == "correct"


def test_what_was_answered_is_not_asked_again(batch: Batch, server: Loopback) -> None:
    batch.ask(*QUESTIONS[:2])
    batch.run()
    whole = batch.output.read_bytes()
    batch.output.write_bytes(whole + b'{"key": "cut off by a k')  # As a killed run leaves it.
    batch.ask(*QUESTIONS)
    told = batch.run()
    assert (told["resumed"], told["statuses"]) == (2, {"answered": 1})
    assert len(server.requests) == 3
    assert batch.output.read_bytes().startswith(whole)
    assert len(batch.rows()) == 3
    assert batch.run()["resumed"] == 3
    assert len(server.requests) == 3


def test_a_limit_ends_it_and_a_higher_one_goes_on(batch: Batch, server: Loopback) -> None:
    told = batch.run("--max-calls", "2")
    assert (told["statuses"], told["stopped"]) == ({"answered": 2}, "max-calls is 2")
    told = batch.run("--prices", "2,10", "--max-cost", "1")  # Prices change no answer.
    assert (told["statuses"], told["resumed"]) == ({"answered": 1}, 2)
    assert len(server.requests) == 3


def test_answers_of_other_settings_are_not_mixed(batch: Batch) -> None:
    batch.run()
    written = batch.output.read_bytes()
    told = batch.run("--set", "k=3")
    assert "other settings" in told["error"]["message"]
    assert batch.output.read_bytes() == written


def test_answers_of_an_evaluator_calibrated_anew_or_of_other_prompts_are_not_mixed(
    batch: Batch, tmp_path: Path
) -> None:
    batch.environment |= {
        "CRAG_EVALUATOR": str(tmp_path / "mine"), "CRAG_PROMPTS": str(tmp_path / "prompts")
    }  # fmt: skip
    prompt = "$question $knowledge"
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "answer_default.md").write_text(f"[user]\n{prompt}\n")
    (tmp_path / "mine").mkdir()
    card = packaged_reader().card
    assert card is not None
    write_card(tmp_path / "mine", card)
    assert "error" not in batch.run()
    assert batch.run()["resumed"] == 3
    (tmp_path / "prompts" / "answer_default.md").write_text(f"[user]\nNow: {prompt}\n")
    assert "other parts" in batch.run()["error"]["message"]
    (tmp_path / "prompts" / "answer_default.md").write_text(f"[user]\n{prompt}\n")
    assert batch.run()["resumed"] == 3
    assert card.calibration is not None
    other = card.calibration.model_copy(update={"upper": 0.999})
    write_card(tmp_path / "mine", card.model_copy(update={"calibration": other}))
    assert "other parts" in batch.run()["error"]["message"]


def test_a_file_of_something_else_is_left_alone(batch: Batch) -> None:
    batch.output.write_text('{"key": "mine"}\n')
    assert "not an answer of `crag batch`" in batch.run()["error"]["message"]
    assert batch.output.read_text() == '{"key": "mine"}\n'


def test_an_evaluator_that_is_none_is_told_before_anything_is_asked(
    batch: Batch, server: Loopback, tmp_path: Path
) -> None:
    batch.environment["CRAG_EVALUATOR"] = str(tiny_bert(tmp_path / "three", outputs=3))
    done = batch.done()
    assert done.returncode == 2
    assert "it has 3 outputs; an evaluator has one" in done.stderr
    assert not batch.rows()
    assert not server.requests


def test_a_question_that_failed_is_asked_again_if_wanted(
    batch: Batch,
) -> None:
    batch.ask(QUESTIONS[0], "x" * 200_000)
    told = batch.run()
    assert told["statuses"] == {"answered": 1, "failed": 1}
    (failed,) = [row for row in batch.rows() if row["status"] == "failed"]
    assert failed["error"].startswith("QuestionError")
    again = batch.run()
    assert (again["resumed"], again["resumed_failed"]) == (2, 1)
    assert batch.run("--again")["statuses"] == {"failed": 1}


def test_the_exit_code_tells_of_questions_that_failed(batch: Batch) -> None:
    batch.ask(QUESTIONS[0])
    assert batch.done().returncode == 0
    batch.ask(QUESTIONS[0], "x" * 200_000)
    assert batch.done("--json").returncode == 1
    done = batch.done()
    assert "2 answered before\n1 of these had failed: --again asks them again" in done.stdout
    assert done.returncode == 1


def test_answers_without_a_model_that_was_away_are_told_and_asked_again(
    batch: Batch, server: Loopback
) -> None:
    server.statuses = [401]
    told = batch.run("--concurrency", "1")
    assert (told["part_failed"], sum(told["statuses"].values())) == (1, 3)
    assert batch.run()["resumed"] == 3
    told = batch.run("--again")
    assert (told["resumed"], told["part_failed"], told["statuses"]) == (2, 0, {"answered": 1})
    batch.output.unlink()
    server.statuses = [401, 401, 401]
    assert "3 of them without a part that failed: the answer's events" in batch.shown()


def test_answers_without_a_search_that_failed_are_told_and_asked_again(
    batch: Batch, server: Loopback
) -> None:
    batch.environment |= {"CRAG_SEARCH": "searxng", "CRAG_SEARXNG_URL": server.url}
    only = ("--set", "only=incorrect")
    assert batch.run(*only)["part_failed"] == 3
    assert (batch.run(*only)["resumed"], batch.run("--again", *only)["resumed"]) == (3, 0)


def test_a_reader_is_told_the_cost_and_what_is_left(batch: Batch) -> None:
    shown = batch.shown("--prices", "2,10", "--max-calls", "2").splitlines()
    assert shown[:2] == [
        "2 answered", "2 model calls, 2,000 tokens read, 20 written, cost 0.0042",
    ]  # fmt: skip
    assert shown[2].startswith("stopped early: max-calls is 2; 1 question left. Run the same")
    assert shown[3] == f"answers: {batch.output}"
    assert batch.shown("--prices", "2,10").splitlines() == [
        "1 answered, 2 answered before",
        "1 model call, 1,000 tokens read, 10 written, cost 0.0021", f"answers: {batch.output}",
    ]  # fmt: skip
    assert batch.shown("--prices", "2,10").splitlines() == [
        "3 answered before", f"answers: {batch.output}",
    ]  # fmt: skip


def test_without_prices_no_cost_is_told(batch: Batch) -> None:
    batch.ask(QUESTIONS[0])
    assert "\n1 model call, 1,000 tokens read, 10 written\n" in batch.shown()
