"""What `make` would run, without running it."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"pytest\.mark\.data\b")


def told(*arguments: str | Path) -> str:
    """Return what make would run in an environment that is not there yet."""
    done = subprocess.run(
        ["make", "--dry-run", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_serving_takes_a_port_and_installs_no_development_tools(tmp_path: Path) -> None:
    said = told("serve", "PORT=3000", f"VENV={tmp_path / 'venv'}")
    assert "crag serve --index .crag/guide --port 3000\n" in said
    assert "--editable '.[serve]'" in said
    assert "[dev]" not in said


def test_the_official_audit_takes_a_folder_and_names() -> None:
    said = told("audit-official", "OFFICIAL=../there", "AUDITS=self-rag")
    assert "papers/measurements/audit_official.py '../there' self-rag\n" in said


@pytest.mark.parametrize("kind", ["serve", "dev"])
def test_an_environment_that_serves_also_asks(kind: str, tmp_path: Path) -> None:
    said = told("serve", f"VENV={tmp_path}")
    names = [
        word for word in said.split() if word.startswith(f"{tmp_path}/serve-") and "*" not in word
    ]
    (tmp_path / names[-1].rpartition("/")[2].replace("serve-", f"{kind}-")).touch()
    assert "pip install" not in told("ask", "Q=Why?", f"VENV={tmp_path}")


def test_questions_are_asked_of_a_named_model() -> None:
    said = told("train-questions", "MODEL=qwen", "URL=http://127.0.0.1:1/v1", "DATA=there")
    asked = [line for line in said.splitlines() if "crag train questions" in line]
    assert len(asked) == 2
    assert all("--model 'qwen' --url 'http://127.0.0.1:1/v1'" in line for line in asked)
    assert "--wikipedia there/corpus/wikipedia.jsonl" in asked[1]
    assert "--model" not in told("train-questions")


def test_what_to_ask_is_missed_before_anything_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "ask", "Q=", f"VENV={tmp_path / 'none'}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("Say what to ask: make ask Q=")
    assert not list(tmp_path.iterdir())


def test_tests_on_data_take_its_folder_and_read_no_other_files() -> None:
    said = told("test-data", "DATA=/some/where", "PROFILE=thorough")
    (line,) = [line for line in said.splitlines() if "-m data" in line]
    options, _, files = line.partition(" --data '/some/where' ")
    assert "--hypothesis-profile thorough" in options
    tests = ((path, path.read_text()) for path in ROOT.glob("tests/**/test_*.py"))
    marked = {str(path.relative_to(ROOT)) for path, text in tests if MARKED.search(text)}
    assert marked
    assert marked == {*files.split()}
    assert "--data ../shared/data" in told("test-data").replace("'", "")


@pytest.mark.parametrize("target", ["test", "test-thorough"])
def test_no_other_tests_read_data(target: str) -> None:
    assert "shared" not in told(target)
