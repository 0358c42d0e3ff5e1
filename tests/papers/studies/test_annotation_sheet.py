"""Sheets for people who judge answers: drawn from a run, filled in, counted."""

import csv
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError
from crag.papers.bench.examples import Example
from crag.papers.studies import annotation_sheet as SHEET  # noqa: N812

RAW = "[Retrieval][Relevant]It is red.[Partially supported][Utility:5]"


def row(number: int, raw: str = RAW, cited: int = 1) -> Any:
    sources = [
        {"number": place, "source": {"title": "=Barn"}, "text": f"Text {place}."}
        for place in range(cited)
    ]
    answer = f"Answer {number}."
    return {"id": str(number), "answer": answer, "citations": sources, "reflection": {"raw": raw}}


EXAMPLES = {str(number): Example(str(number), "popqa", f"Q{number}?", ()) for number in range(9)}


def filled(path: Path, target: Path, words: list[tuple[str, str, str]]) -> Path:
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        for line, said in zip(lines, words, strict=True):
            writer.writerow({**line, **dict(zip(SHEET.JUDGED, said, strict=True))})
    return target


def test_a_sheet_shows_answers_and_passages_and_not_what_the_model_said(tmp_path: Path) -> None:
    rows = [row(number) for number in range(5)] + [row(6, cited=0), row(99)]
    lines = SHEET.draw(rows, EXAMPLES, 3, seed=1)
    assert lines == SHEET.draw(rows, EXAMPLES, 3, seed=1)
    assert len({line["question"] for line in lines}) == 3
    assert [(line["passage"], line["support"]) for line in lines] == [("relevant", "partially")] * 3
    path = tmp_path / "sheet.csv"
    SHEET.write(lines, path)
    told = path.read_text("utf-8")
    assert told.splitlines()[0] == ",".join([*SHEET.SHOWN, *SHEET.JUDGED])
    assert "partially" not in told
    assert ", =Barn," in told  # No spreadsheet takes it for a formula.


def test_labels_that_are_not_one_for_each_passage_are_left_out() -> None:
    (first, second) = SHEET.draw([row(1, cited=2)], EXAMPLES, 1, seed=0)
    assert (first["passage"], second["support"]) == ("", "")
    both = SHEET.draw([row(1, RAW + "[Irrelevant]No.", cited=2)], EXAMPLES, 1, seed=0)
    assert [line["passage"] for line in both] == ["relevant", "irrelevant"]


def test_what_judges_say_is_counted_against_the_model_and_each_other(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    SHEET.write(SHEET.draw([row(n) for n in range(4)], EXAMPLES, 4, seed=0), path)
    right = ("yes", "relevant", "partially")
    filled(path, path, [right, right, ("no", "irrelevant", "no"), ("", "", "")])
    other = filled(path, tmp_path / "b.csv", [right, ("no", "Relevant", "fully"), right, right])
    assert SHEET.agreement([path]).splitlines()[2:] == [
        "| plausible and supported | 2 of 3 | - | - |",
        "| passage | - | 2 of 3 | - |",
        "| support | - | 2 of 3 | - |",
    ]
    assert SHEET.agreement([path, other]).splitlines()[2:] == [
        "| plausible and supported | 5 of 7 | - | 1 of 3 |",
        "| passage | - | 6 of 7 | 2 of 3 |",
        "| support | - | 5 of 7 | 1 of 3 |",
    ]


def test_another_word_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    SHEET.write(SHEET.draw([row(1)], EXAMPLES, 1, seed=0), path)
    filled(path, path, [("maybe", "", "")])
    with pytest.raises(DataError, match=r"sheet.csv, line 2: .*'maybe'; write one of yes, no"):
        SHEET.agreement([path])
