"""Every format of citation marks is written, found, changed, removed and disarmed alike."""

import re
from pathlib import Path

import pytest

import crag.serve
from crag.answering.citations import validate
from crag.state import Citation, Source
from crag.text.marks import (
    FORMATS,
    PATTERN,
    SINGLE,
    Mark,
    as_mark,
    marks_of,
    with_numbers,
    without_marks,
)
from crag.text.untrusted import neutral

every_format = pytest.mark.parametrize(("before", "after"), FORMATS)


def test_the_first_format_is_written() -> None:
    assert as_mark(3) == "[3]"
    assert as_mark(1, 2) == "[1, 2]"


@every_format
def test_marks_are_found_with_the_white_space_before_them(before: str, after: str) -> None:
    text = f"A  {before}1, 20;3{after} b{before}12345{after}{before}4{after}"
    found = list(marks_of(text))
    assert [mark.numbers for mark in found] == [[1, 20, 3], [4]]
    assert found[0] == Mark(1, 3, 3 + len(f"{before}1, 20;3{after}"), [1, 20, 3])
    assert text[found[1].bracket : found[1].end] == f"{before}4{after}"


@every_format
def test_numbers_are_changed_and_what_stands_between_them_stays(before: str, after: str) -> None:
    text = f"A {before}1;2{after}, b {before}9{after}."
    changed = with_numbers(text, lambda numbers: [number + 1 for number in numbers])
    assert changed == f"A {before}2;3{after}, b {before}10{after}."


@every_format
def test_a_mark_without_numbers_goes_with_its_white_space(before: str, after: str) -> None:
    text = f"A {before}1, 9{after}, b \n{before}9{after}. {before}2{after}"
    known = with_numbers(text, lambda numbers: [number for number in numbers if number < 9])
    assert known == f"A {as_mark(1)}, b. {before}2{after}"
    assert without_marks(text) == "A, b."


@every_format
def test_marks_of_an_answer_are_validated_and_those_of_a_document_disarmed(
    before: str, after: str
) -> None:
    source = Source(id="1", title="", url="", position="")
    checked = validate(
        f"One {before}1{after}. Two {before}7{after}.",
        [Citation(number=1, text="x", source=source)],
    )
    assert checked.answer == f"One {before}1{after}. Two."
    assert neutral(f"It says {before}7{after}.") == "It says (7)."


def test_the_page_knows_the_same_marks() -> None:
    code = (Path(crag.serve.__file__).parent / "static" / "citations.js").read_text("utf-8")
    assert f"\nexport const MARK = /({PATTERN})/;\n" in code
    assert f"((?:{SINGLE})+)" in code  # After a quotation.
    written = re.search(
        r'asMark = \(\.\.\.numbers\) => `(.+)\$\{numbers\.join\(", "\)\}(.+)`;', code
    )
    assert written is not None
    assert written.groups() == FORMATS[0]
