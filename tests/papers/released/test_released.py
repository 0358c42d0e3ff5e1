"""Ours gives what CRAG's released programs gave; where a checkout is, they are asked again.

`released.jsonl` has what the programs answered to made-up inputs, which a seed draws anew.
"""

import sys
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crag.papers.released import official_crag
from crag.papers.released.official import as_json, recordings


def test_every_recorded_answer_is_ours() -> None:
    asked: Counter[str] = Counter()
    for case, seed, answer in recordings(official_crag.CASES, official_crag.RECORDED):
        assert as_json(case.ours(seed)) == answer, (case.name, seed)
        asked[case.name] += 1
    assert list(asked) == [case.name for case in official_crag.CASES]
    assert asked.total() > 300


@pytest.fixture
def audit() -> Any:
    from crag.papers.released import audit

    return audit


def ended(audit: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["audit", *arguments])
    code: int = audit.main()
    return code


@pytest.mark.parametrize(("wrong", "code"), [(9, 0), (2, 1)])
def test_it_prints_each_count_and_fails_where_one_differs(
    audit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    wrong: int, code: int,
) -> None:  # fmt: skip
    official = import_module("crag.papers.released.official")
    theirs = [0, None, 2, 3, 4]

    def answer(programs: Any, seed: int) -> Any:
        assert programs.folder == Path("there")
        return theirs[seed]

    made_up = SimpleNamespace(
        CASES=[official.Case("answers", 9, answer, lambda seed: -1 if seed == wrong else seed)],
        released=lambda folder: nullcontext(SimpleNamespace(folder=folder, cases=list)),
    )
    monkeypatch.setitem(audit.AUDITS, "made-up", made_up)
    assert ended(audit, monkeypatch, "there", "made-up", "--runs", "3") == code
    assert capsys.readouterr().out == (
        "made-up: the released programs\n"
        f"  answers: equal in {3 - code} of 3, and in 1 the official program fails\n"
    )


def test_it_names_the_audits_and_the_file_that_is_missing(
    audit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        ended(audit, monkeypatch, str(tmp_path), "self-crag")
    assert "no such audit: self-crag; there are self-rag" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"run_long_form_static\.py is not there"):
        ended(audit, monkeypatch, str(tmp_path), "self-rag")
    with pytest.raises(SystemExit, match=r"CRAG_Inference\.py is not there"):
        ended(audit, monkeypatch, str(tmp_path), "crag")


def test_a_program_runs_with_its_own_modules_and_leaves_no_trace(
    audit: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del audit
    official = import_module("crag.papers.released.official")
    (tmp_path / "colorsys.py").write_text("NAME = 'its own'\n")
    (tmp_path / "there.py").write_text(
        "import sys, vllm\nfrom colorsys import NAME\nprint(NAME)\n"
        "def main():\n    print(NAME)\n    said.append((NAME, vllm.LLM, sys.argv[1:]))\nsaid = []\n"
    )
    ours, path, argv = import_module("colorsys"), list(sys.path), list(sys.argv)
    with official.program(tmp_path, "there", {"vllm": official.stand_in(LLM=1)}) as loaded:
        assert official.run_main(loaded, ["--mode", "x"]) == "its own\n"
    assert loaded.said == [("its own", 1, ["--mode", "x"])]
    assert not {"vllm", "there"} & sys.modules.keys()
    assert (sys.modules["colorsys"], sys.path, sys.argv) == (ours, path, argv)
    assert capsys.readouterr().out == ""
