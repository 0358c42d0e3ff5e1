"""The examples run as a user runs them: offline, without a key, as programs of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.langchain.served import serving

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
SAID = {
    "lcel_chain": [
        "corrected: (a model would answer from a prompt of 59 words)",
        "kept: The last of them, Note G, lists the steps",
        "'action': 'correct'",
        "a prompt of 16 words)\n    event: search_unavailable",
    ],
    "graph_in_chain": [
        "correct: “The lighthouse of Cape Merrow was designed by Edith Halloran.” [1]",
        "[1] merrow.txt",
        "incorrect: I could not find this in the documents.",
    ],
    "agent_tool": [
        "“The ferry to Orrin leaves at seven in the morning.” [1]",
        "Sources:\n[1] Ferries, line 4, ferries.txt\nartifact: correct [",
        "- abstained: no knowledge was left after the action incorrect",
        "artifact: incorrect [-1.0, -1.0]",
    ],
    "own_graph": [
        "heron: “The heron nests in tall trees near water.” [1] heron.txt",
        "penguin: somebody has to go and look",
        "steps: retrieve grade ",
        "generate research write\n",
    ],
}
"""What each example that needs no server prints."""


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    keys = ("OPENAI", "TAVILY", "SEARXNG", "CRAG", "LANGSMITH")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(keys)}
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_example_is_run_and_told_of() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*SAID, "remote_graph"}
    told = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in sorted(names) if f"({name}.py)" not in told] == []


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs(name: str) -> None:
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert [line for line in SAID[name] if line not in done.stdout] == [], done.stdout


@pytest.mark.slow
def test_the_example_of_a_server_runs(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        done = run("remote_graph", "--url", url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ask_crag (success):\n“")
    assert "\n[1] Action" in done.stdout or "action.md" in done.stdout
    assert done.stdout.endswith("steps: retrieve grade refine generate\naction: correct\n")


@pytest.mark.slow  # The client tries again for some seconds.
def test_the_example_of_a_server_says_when_it_is_down() -> None:
    done = run("remote_graph", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "ask_crag (error):\nNo answer: ConnectError" in done.stdout
    assert done.stderr.endswith("Start it with: make serve\n")
