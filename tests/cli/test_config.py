"""`crag.toml` on the command line: every command reads the same file."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from crag.retrieval.backends import STORES
from tests.commands import crag


@pytest.mark.parametrize("address", [one.address for one in STORES if "./FOLDER" in one.address])
def test_a_store_of_the_file_is_filled_and_asked(address: str, tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    (tmp_path / "own_shelf.py").write_text(
        "from langchain_core.vectorstores import InMemoryVectorStore as shelf\n"
    )
    place = address.replace("FOLDER", "kept").replace("MODULE:FUNCTION", "own_shelf:shelf")
    (tmp_path / "crag.toml").write_text(f'index = "{place}"\n')
    assert crag("index", "kettle.md", folder=tmp_path).returncode == 0
    done = crag("ask", "How long does a kettle take?", "--json", folder=tmp_path)
    assert "three minutes" in json.loads(done.stdout)["answer"]
    assert (tmp_path / "kept").is_dir()
    assert not (tmp_path / ".crag").exists()


def test_doctor_tells_what_the_file_sets_and_what_overrules_it(tmp_path: Path) -> None:
    (tmp_path / "office.toml").write_text('index = "kept"\nevaluator = "cosine"\n')
    done = crag(
        "--config", "office.toml", "doctor", "--quick", "--json",
        folder=tmp_path, environment={"CRAG_EVALUATOR": "reader"},
    )  # fmt: skip
    told = {one["part"]: one for one in json.loads(done.stdout)}
    assert told["configuration"]["in_use"] == str(tmp_path / "office.toml")
    assert told["configuration"]["why"] == "index; overruled by the environment: evaluator"
    assert told["index"]["in_use"] == str(tmp_path / "kept")
    assert told["evaluator"]["in_use"].startswith("reader")


def test_an_option_overrules_the_file(tmp_path: Path) -> None:
    (tmp_path / "crag.toml").write_text('index = "kept"\n')
    done = crag("doctor", "--quick", "--json", "--index", "other", folder=tmp_path)
    told = {one["part"]: one for one in json.loads(done.stdout)}
    assert told["index"]["in_use"] == "other"


def test_a_wrong_key_ends_the_command_with_the_near_one(tmp_path: Path) -> None:
    (tmp_path / "crag.toml").write_text('evalutor = "cosine"\n')
    done = crag("ask", "Why?", folder=tmp_path)
    assert done.returncode == 2
    assert "did you mean evaluator" in " ".join(done.stderr.split())


def test_the_version() -> None:
    assert crag("--version").stdout == f"crag {version('corrective-rag')}\n"
