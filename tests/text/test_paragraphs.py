"""Plain text into paragraphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.blocks import all_within, text_of
from crag.text.paragraphs import (
    blocks_of_text,
    paragraphs_of,
)

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


@given(st.text(alphabet=st.sampled_from("ab -1.|\n"), max_size=400))
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


def test_a_log_is_a_paragraph_a_line_and_a_table_has_rows() -> None:
    log = [
        f"2024-03-05 09:{at:02} INFO pump {at * 7919 % 100} runs{'!' * (at % 9)}"
        for at in range(60)
    ]
    blocks = blocks_of_text("\n".join([*log, "", "| a | b |", "|---|---|", "| 1 | 2 |"]))
    assert [block.text for block in blocks[:-1]] == log
    assert [row.cells for row in blocks[-1].rows] == [["a", "b"], ["1", "2"]]
    assert [row.first for row in blocks[-1].rows] == [62, 64]
