"""Which passages of documentation a question is asked of."""

from pathlib import Path

import pytest

from crag.papers.reader.asked_units import (
    WIKIPEDIA,
    introductions,
    sections_of,
    units_in,
)
from tests.reflective import written

PARTS = ("lever", "lamp", "barrel", "hose", "lid", "valve")
PUMP = """The pump stops by itself after twenty minutes. It starts again when you press the lever.

Set the time with this table:

| name | what the pump does with it |
|------|----------------------------|
| wait | how many minutes the pump rests after each run |
| loud | no |

- Empty the barrel before the first night with frost.
- Dry it.

Open the lid like this:

```
pump open the lid and wait for the green lamp
```
"""


def texts_in(text: str) -> list[str]:
    return [text[start:end] for start, end in units_in(text)]


def test_units_are_understood_alone() -> None:
    first, both, row, item, code = texts_in(PUMP)
    assert first == "The pump stops by itself after twenty minutes."
    assert both == PUMP.split("\n", maxsplit=1)[0]
    assert row == "| wait | how many minutes the pump rests after each run |"
    assert item == "- Empty the barrel before the first night with frost."
    said = "Open the lid like this: ``` pump open the lid and wait for the green lamp ```"
    assert " ".join(code.split()) == said


@pytest.mark.parametrize(
    "text",
    [
        "It is dry.",
        "This pump is under the MIT license, and so are all of its parts.",
        "Die Pumpe läuft, solange die grüne Lampe nicht von allein erlischt.",
        "1234567890 1234567890 1234567890 12345 12345 12345 12345 and a pump.",
        "However, it stops by itself after twenty minutes or so of running.",
        "The pump takes the options and the numbers that stand in the list below:",
    ],
)
def test_nothing_is_asked_of_what_says_little_alone(text: str) -> None:
    assert texts_in(text) == []


def test_a_package_has_so_many_units_and_each_text_once(tmp_path: Path) -> None:
    folder = tmp_path / "pump"
    (folder / "docs").mkdir(parents=True)
    for number in range(5):
        page = "\n".join(f"The pump number {number} has a long {part}." for part in PARTS)
        (folder / "docs" / f"page{number}.md").write_text(f"# Page {number}\n\n{page}\n")
    (folder / "again.md").write_text((folder / "docs" / "page0.md").read_text())
    sections = sections_of(folder, 4)
    assert len(sections) == len({one.text for one in sections}) == 5
    assert sorted(len(one.units) for one in sections) == [0, 0, 0, 2, 2]
    assert {one.package for one in sections} == {"pump"}
    assert {one.source for one in sections} <= {
        "again.md", *(f"docs/page{number}.md" for number in range(5))
    }  # fmt: skip
    assert sections_of(folder, 4) == sections


def test_one_sentence_of_an_introduction_is_a_unit(tmp_path: Path) -> None:
    long = "Ada Lovelace was an English writer who wrote the first program."
    articles = [{"title": "Ada", "text": f"{long} Short."}, {"title": "B", "text": "Short."}]
    corpus = written(tmp_path / "wikipedia.jsonl", [*articles, {"title": "C", "text": long}])
    first, second, third = introductions(corpus, 2, seed=0)
    assert (first.package, first.source, first.path) == (WIKIPEDIA, "Ada", "Ada")
    assert [first.text[slice(*unit)] for unit in first.units] == [long]
    assert second.units == ()
    assert third.units
    assert sum(bool(one.units) for one in introductions(corpus, 1, seed=0)) == 1
