"""The guide is true: its generated parts are up to date, its Python and its examples run."""

import re
import runpy
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.generated import PARTS, ROOT, langgraph_json, renewed

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
WITH_CODE = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if PYTHON.search(path.read_text("utf-8"))
]


SCORE = re.compile(r"[+-]\d\.\d\d( [█░]+)?")
"""Scores may differ in the last digit between processors."""


@pytest.mark.parametrize("path", PARTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_parts_are_up_to_date(path: Path) -> None:
    written, now = (SCORE.sub("", text) for text in (path.read_text("utf-8"), renewed(path)))
    assert written == now, "run `make docs`"


def test_langgraph_json_serves_every_graph() -> None:
    assert (ROOT / "langgraph.json").read_text("utf-8") == langgraph_json(), "run `make docs`"


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_python_in_the_documents_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for code in PYTHON.findall(path.read_text("utf-8")):
        exec(compile(code, str(path), "exec"), {})  # noqa: S102 - what a reader would run
    assert "Ada Lovelace" in capsys.readouterr().out


EXAMPLES = ROOT / "docs" / "examples"
SAID = {
    "lcel_chain": [
        "corrected: (a model would answer from a prompt of 36 words)",
        "kept: The last of them, Note G, lists the steps",
        "'title': 'Ada Lovelace'",
        "a prompt of 16 words)\n    event: search_unavailable",
    ],
    "graph_in_chain": [
        (
            "correct: “The lighthouse of Cape Merrow was designed by Edith Halloran. It was lit in "
            "1871.” [1]"
        ),
        "[1] merrow.txt",
        "incorrect: I could not find this in the documents.",
    ],
    "agent_tool": [
        "“The ferry to Orrin leaves at seven in the morning. It carries twelve cars.” [1]",
        "Sources:\n[1] Ferries, line 4, ferries.txt\n",
        "artifact: correct [0.7, -0.8]",
        "- abstained: no knowledge was left after the action incorrect",
        "artifact: incorrect [-1.0, -0.9]",
    ],
    "own_graph": [
        (
            "heron: “The heron nests in tall trees near water. "
            "It lays three to five eggs in April.” [1] heron.txt"
        ),
        "penguin: somebody has to go and look",
        "steps: open_run retrieve grade ",
        "generate research write\n",
    ],
}
"""What each example that needs no server prints."""
ELSEWHERE = {"remote_graph", "stores"}


def run(name: str) -> None:
    """Run an example as `python NAME.py` does."""
    with patch.object(sys, "argv", [f"{name}.py"]):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def test_every_example_is_run_and_told_of() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*SAID, *ELSEWHERE}
    told = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in sorted(names) if f"({name}.py)" not in told] == []


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(name)
    said = capsys.readouterr().out
    assert [line for line in SAID[name] if line not in said] == [], said
