"""`crag.toml` on the command line: every command reads the same file."""

import json
import subprocess
from pathlib import Path

from tests.commands import CRAG, crag, variables


def test_a_store_in_the_folder_is_for_the_command_line_alone(tmp_path: Path) -> None:
    """A folder with a crag.toml may be somebody else's, and is not to run code by it."""
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    (tmp_path / "own_shelf.py").write_text(
        "from langchain_core.vectorstores import InMemoryVectorStore as shelf\n"
    )
    (tmp_path / "crag.toml").write_text('index = "own_shelf:shelf://./kept"\n')
    refused = subprocess.run(
        [CRAG, "index", "kettle.md"], cwd=tmp_path, env=variables({}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "own_shelf:shelf cannot be imported" in " ".join(refused.stderr.split())
    named = ("--index", "own_shelf:shelf://./kept")
    assert crag("index", "kettle.md", *named, folder=tmp_path).returncode == 0
    assert (tmp_path / "kept" / "index.sqlite3").is_file()


def test_an_option_overrules_the_environment_which_overrules_the_file(tmp_path: Path) -> None:
    (tmp_path / "crag.toml").write_text('index = "kept"\nevaluator = "chat"\nmodel = "m"\n')
    done = crag(
        "doctor", "--json", "--index", "other", folder=tmp_path,
        environment={
            "CRAG_EVALUATOR": "reader", "OPENAI_API_KEY": "none",
        },
    )  # fmt: skip
    told = {one["part"]: one["in_use"] for one in json.loads(done.stdout)}
    assert (told["index"], told["evaluator"], told["answers"]) == ("other", "reader", "m")
