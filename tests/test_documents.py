"""The generated parts of the documents are up to date, and Python in the guide runs."""

import re
from pathlib import Path

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
