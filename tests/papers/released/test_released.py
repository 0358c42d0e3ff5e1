"""Ours gives what the released programs gave; where a checkout is, they are asked again.

The files beside this one have what the programs answered to made-up inputs and scripted models,
which a seed draws anew; `make audit-official` asks in many more runs, and can write them anew.
"""

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from crag.papers.released import audit, official
from crag.papers.released.reflection import released_ratio
from crag.reflection_tokens import NO_RETRIEVAL, RETRIEVAL


@pytest.mark.parametrize(("name", "answers"), [("crag", 309), ("self-rag", 596)])
def test_every_recorded_answer_is_ours(name: str, answers: int) -> None:
    asked: Counter[str] = Counter()
    programs = audit.AUDITS[name]
    for case, seed, answer in official.recordings(programs.CASES, programs.RECORDED):
        assert official.as_json(case.ours(seed)) == answer, (case.name, seed)
        asked[case.name] += 1
    assert list(asked) == [case.name for case in programs.CASES]
    assert asked.total() == answers


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["audit", *arguments])
    return audit.main()


@pytest.mark.parametrize(("wrong", "code"), [(9, 0), (2, 1)])
def test_it_prints_each_count_and_fails_where_one_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: int, code: int
) -> None:
    theirs = [0, None, 2, 3, 4]
    case = official.Case(
        "answers",
        9,
        lambda programs, seed: programs[seed],
        lambda seed: -1 if seed == wrong else seed,
    )
    made_up = SimpleNamespace(CASES=[case], released=lambda _: nullcontext(theirs))
    monkeypatch.setitem(audit.AUDITS, "made-up", made_up)
    assert ended(monkeypatch, "there", "made-up", "--runs", "3") == code
    assert capsys.readouterr().out == (
        "made-up: the released programs\n"
        f"  answers: equal in {3 - code} of 3, and in 1 the official program fails\n"
    )


def test_it_names_the_audits_and_the_file_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        ended(monkeypatch, str(tmp_path), "self-crag")
    assert "no such audit: self-crag; there are self-rag" in capsys.readouterr().err
    for name, file in (("self-rag", "run_long_form_static"), ("crag", "CRAG_Inference")):
        with pytest.raises(SystemExit, match=rf"{file}\.py is not there"):
            ended(monkeypatch, str(tmp_path), name)


@pytest.mark.parametrize(
    ("yes", "no", "expected"),
    [(0.9, 0.1, 0.043756), (0.5, 0.5, 0.5), (0.1, 0.9, 0.956244), (0.001, 0.0012, 0.506687)],
)
def test_the_released_ratio_is_inverted(yes: float, no: float, expected: float) -> None:
    assert released_ratio({RETRIEVAL: yes, NO_RETRIEVAL: no}) == pytest.approx(expected, abs=1e-6)
    assert released_ratio({}) == 0.5
