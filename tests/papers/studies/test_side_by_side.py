"""The comparison with binary-llm on small numbers: it runs, and counts calls as CRAG promises."""

import json
import sys

import pytest

from crag.papers.studies import side_by_side

FEW = (
    "--rounds", "1", "--concurrent", "2", "--k", "3", "--scale", "0.05", "--json",
    "--only", "binary-llm", "no time", "crag, Ambiguous",
)  # fmt: skip


@pytest.mark.slow
def test_calls_are_1_2_2_against_one_for_each_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["side_by_side.py", *FEW])
    side_by_side.main()
    found = json.loads(capsys.readouterr().out)
    calls = {(one["case"], one["questions"]): one["calls"] for one in found}
    assert len(calls) == len(found) == 10
    for questions in (1, 2):
        assert calls["crag, Correct, evaluator of no time", questions] == 1
        assert calls["crag, Incorrect, evaluator of no time", questions] == 2
        assert calls["crag, Ambiguous", questions] == 2
        assert calls["binary-llm, all documents pass", questions] == 3 + 1
        assert calls["binary-llm, one document passes", questions] == 3 + 2
    assert all(one["seconds"] > 0 and one["tokens"] > 0 for one in found)
    tokens = {one["case"]: one["tokens"] for one in found}
    assert tokens["crag, Correct, evaluator of no time"] < tokens["binary-llm, all documents pass"]
