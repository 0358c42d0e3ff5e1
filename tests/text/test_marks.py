"""Citation marks are found, changed and removed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import crag.serve
from crag.text.marks import PATTERN, SINGLE, Mark, marks_of, with_numbers, without_marks


def test_marks_are_found_with_the_white_space_before_them() -> None:
    text = "A  [1, 20;3] b[12345][4]"
    assert list(marks_of(text)) == [Mark(1, 3, 12, [1, 20, 3]), Mark(21, 21, 24, [4])]


@pytest.mark.parametrize(
    ("text", "numbers", "changed"),
    [
        ("A [1;2], b [9].", lambda number: [number + 1], "A [2;3], b [10]."),
        ("A [1, 9], b \n[9]. [2]", lambda number: [number] * (number < 9), "A [1], b. [2]"),
    ],
)
def test_numbers_are_changed_and_a_mark_without_numbers_goes(
    text: str, numbers: Callable[[int], list[int]], changed: str
) -> None:
    assert with_numbers(text, lambda old: [new for one in old for new in numbers(one)]) == changed
    assert without_marks(text) in {"A, b.", "A, b"}


def test_the_page_knows_the_same_marks() -> None:
    code = (Path(crag.serve.__file__).parent / "static" / "citations.js").read_text("utf-8")
    assert f"\nexport const MARK = /({PATTERN})/;\n" in code
    assert f"((?:{SINGLE})+)" in code  # After a quotation.
    written = re.search(
        r'asMark = \(\.\.\.numbers\) => `(.+)\$\{numbers\.join\(", "\)\}(.+)`;', code
    )
    assert written is not None
    assert written.groups() == ("[", "]")
