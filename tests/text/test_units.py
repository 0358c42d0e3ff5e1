"""Plain text into paragraphs, and any text into strips."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crag.text.blocks import all_within, text_of
from crag.text.paragraphs import blocks_of_text, paragraphs_of
from crag.text.units import LONGEST, parts_of, units_of

PIECES = (
    "# A\n", "## B c\n", "\n", "\n\n", "One is here. ", "Two of\nlines. ", "- item one\n",
    "  - inner\n", "1. num\n", "   more\n", "| a | b |\n", "| --- | --- |\n", "| c | d |\n",
    "```py\n", "x = 1\n", "```\n", "**Bold**\n", "It is: ", "word " * 130, "é。世界。",
    "  \n", "\t",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_every_character_is_in_one_unit_but_for_white_space(text: str) -> None:
    units = units_of(text)
    for spans in ([(part.start, part.end) for part in parts_of(text)], units):
        at = 0
        for start, end, *_ in spans:
            assert start >= at
            assert not text[at:start].strip()
            assert text[start:end].strip()
            at = end
        assert not text[at:].strip()
    for unit in units:
        assert unit.before in text
    inside = {(part.start, part.end) for part in parts_of(text) if len(text) < LONGEST}
    edges = {unit.start for unit in units}, {unit.end for unit in units}
    assert edges[0] <= {start for start, _ in inside} or not inside
    assert edges[1] <= {end for _, end in inside} or not inside


def cut(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in units_of(text)]


@pytest.mark.parametrize(
    ("text", "strips"),
    [
        ("One. Two. Three. Four.", ["One. Two. Three.", "Four."]),
        ("One. Two. Three. It is four.", ["One. Two. Three. It is four."]),
        ("One. Two. Is it three? Yes.", ["One. Two. Is it three? Yes."]),
        ("Some\nlines.\n\nMore.", ["Some\nlines.\n\nMore."]),
        ("A.\n\n## B\n\nC. D.\n\n### E\n", ["A.", "## B\n\nC. D.", "### E"]),
        ("# A\n\n## B\n\nC.", ["# A\n\n## B\n\nC."]),
        ("A.\n\n**Merlin**\n\nIt flies.", ["A.", "**Merlin**\n\nIt flies."]),
        ("A.\n\n**Never open it.**\n\nB.", ["A.\n\n**Never open it.**\n\nB."]),
        ("A.\n\n- b\n- c\n\nD.", ["A.", "- b\n- c", "D."]),
        ("A. These:\n\n- b\n  - c\n\n  d\n- e", ["A. These:\n\n- b\n  - c\n\n  d\n- e"]),
        ("Run it.\n\n```\na\n\nb\n```\n\nSo.", ["Run it.\n\n```\na\n\nb\n```", "So."]),
        ("A.\n\n| b |\n| --- |\n| c |\n\nD.", ["A.", "| b |\n| --- |\n| c |", "D."]),
        ("1. a\nb\n2. c", ["1. a\nb\n2. c"]), ("```\nopen", ["```\nopen"]),
    ],
)  # fmt: skip
def test_what_is_read_together_is_one_strip(text: str, strips: list[str]) -> None:
    assert cut(text) == strips


ITEMS = "".join(f"- Part {n}: {'a word ' * 10}\n" for n in range(20))
ROWS = "".join(f"| part {n} | {'a word ' * 10}|\n" for n in range(20))
CODE = "\n".join(f"part_{n} = {'word + ' * 10}1" for n in range(20))


@pytest.mark.parametrize(
    ("text", "before", "begins"),
    [
        (f"These:\n\n{ITEMS}", "These:\n\n", "- Part"),
        (f"Yes. These:\n\n| a | b |\n| --- | --- |\n{ROWS}",
         "These:\n\n| a | b |\n| --- | --- |\n", "| part"),
        (f"| a | b |\n| --- | --- |\n{ROWS}", "| a | b |\n| --- | --- |\n", "| part"),
        (f"So:\n\n```py\n{CODE}\n```", "So:\n\n```py\n", "part_"),
    ],
)  # fmt: skip
def test_a_long_block_is_cut_between_its_parts_which_know_what_they_need(
    text: str, before: str, begins: str
) -> None:
    text = f"# Parts\n\n{text}"
    units = units_of(text)
    others = [unit for unit in units if text[unit.start : unit.end].startswith(begins)]
    assert len(others) > 1
    assert {unit.before for unit in others} == {before}
    assert {unit.before for unit in units if unit not in others} == {""}
    assert all(len(text[unit.start : unit.end].split()) <= LONGEST for unit in others)
    assert {unit.headings for unit in units} == {("Parts",)}


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("word " * 1000, LONGEST),
        ("- " + "One sentence of an item that goes on. " * 60, LONGEST),
        ("- first\n" + "".join(f"  - inner item number {n} of many\n" for n in range(60)), LONGEST),
        ("# a\n" * 500, 1000),
    ],
)
def test_no_strip_is_too_long_for_an_evaluator(text: str, longest: int) -> None:
    strips = cut(text)
    assert max(len(strip.split()) for strip in strips) <= longest
    assert "".join("".join(strips).split()) == "".join(text.split())


def test_units_know_the_headings_above_them() -> None:
    text = "# A\n\nOne.\n\n### B:\n\nTwo.\n\n## C\n\n3.\n\n**1. D**\n\n**1.1 F**\n\n4.\n\n# E\n\n5."
    found: list[Any] = [list(unit.headings) for unit in units_of(text)]
    assert found == [["A"], ["A", "B"], ["A", "C"], ["A", "C", "1. D", "1.1 F"], ["E"]]


def test_no_strip_takes_a_part_of_a_short_paragraph() -> None:
    paragraphs = [
        "Kettle. It holds a litre.",
        "Toaster. It holds two. It is red.",
        "Iron. It is hot.",
    ]
    units = units_of("\n\n".join(paragraphs))
    text = "\n\n".join(paragraphs)
    assert [text[unit.start : unit.end] for unit in units] == paragraphs


LONG = "This is a line that a service wrote, which is one paragraph of a page. " * 3


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("", ()),
        ("too short", ()),
        (
            "One paragraph\nof two lines.\n\n\nAnother one.",
            ("One paragraph of two lines.", "Another one."),
        ),
        (
            "One paragraph\r\nof two.\r\n \t\r\nAnother one.",
            ("One paragraph of two.", "Another one."),
        ),
        (f"{LONG}\nA menu entry\n{LONG}", (LONG.strip(), "A menu entry", LONG.strip())),
        ("The first page.\fThe second page.", ("The first page.", "The second page.")),
    ],
)
def test_paragraphs(text: str, paragraphs: tuple[str, ...]) -> None:
    assert paragraphs_of(text) == paragraphs


def test_wrapped_lines_are_joined_up_to_the_end_of_a_sentence() -> None:
    text = (
        "A colony of bees needs fifteen kilograms of stores\n"
        "to come through a winter, or syrup.\n"
        "Syrup for autumn is made of three parts of sugar.\n"
        "Contents of the jar\n"
        "Thinner syrup tempts the queen to lay."
    )
    assert paragraphs_of(text) == (
        "A colony of bees needs fifteen kilograms of stores to come through a winter, or syrup.",
        "Syrup for autumn is made of three parts of sugar.",
        "Contents of the jar",
        "Thinner syrup tempts the queen to lay.",
    )


@example("---  ---  ---\n" * 3)
@given(st.lists(st.sampled_from([*"ab -1.|\n", "a   b   ab\n"]), max_size=200).map("".join))
def test_blocks_of_a_text_lose_nothing_and_stand_where_they_say(text: str) -> None:
    lines = text.split("\n")
    before = 0
    for block in blocks_of_text(text):
        assert before < block.first <= block.last <= len(lines)
        before = block.last
        for inner in all_within([block]):
            here = "".join(lines[inner.first - 1 : inner.last])
            assert set(inner.text) - set(" \n\\") <= set(here)
    said = text_of(blocks_of_text(text))
    assert said.count("a") == text.count("a")
    assert said.count("b") == text.count("b")


def test_headings_of_a_text_are_underlined_or_stand_alone() -> None:
    text = (
        "=====\nTents\n=====\n\nSmall ones\n==========\nThey are light.\n\nKestrel\n\n"
        "It weighs 3 kg.\n\nwritten small\n\nMerlin\n\n- blue\n\n2. Seen\n\n2.1 Sold in May\n\nAll."
    )
    assert [(one.kind, one.level, one.first) for one in blocks_of_text(text)] == [
        ("heading", 1, 1), ("heading", 2, 5), ("text", 0, 7), ("heading", 4, 9), ("text", 0, 11),
        ("text", 0, 13), ("heading", 4, 15), ("list", 0, 17), ("heading", 4, 19),
        ("heading", 5, 21), ("text", 0, 23),
    ]  # fmt: skip


def test_a_log_is_a_paragraph_a_line_and_a_table_has_rows() -> None:
    log = [
        f"2024-03-05 09:{at:02} INFO pump {at * 7919 % 100} runs{'!' * (at % 9)}"
        for at in range(60)
    ]
    aligned = ["NAME     STATE     AGE", "api one  running   2 d", "mailer             9 d"]
    piped = ["| a | b |", "|---|---|", "| 1 | 2 |"]
    blocks = blocks_of_text("\n".join([*log, "", *piped, "", *aligned]))
    assert [block.text for block in blocks[:-2]] == log
    assert [row.cells for row in blocks[-2].rows] == [["a", "b"], ["1", "2"]]
    assert [row.first for row in blocks[-2].rows] == [62, 64]
    assert [row.cells[:2] for row in blocks[-1].rows[1:]] == [
        ["api one", "running"],
        ["mailer", ""],
    ]
