"""Plain text into paragraphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.paragraphs import (
    FEWEST_CHARACTERS,
    WIDEST_LINE,
    paragraphs_of,
    with_paragraphs_apart,
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


@given(st.text(alphabet=st.sampled_from("ab .\n\r\f\t"), max_size=3 * WIDEST_LINE))
def test_every_paragraph_stands_on_one_line_and_loses_nothing(text: str) -> None:
    paragraphs = paragraphs_of(text)
    assert all(len(paragraph) >= FEWEST_CHARACTERS for paragraph in paragraphs)
    assert all(paragraph == " ".join(paragraph.split()) for paragraph in paragraphs)
    rest = "".join(text.split())
    for paragraph in paragraphs:
        before, found, rest = rest.partition("".join(paragraph.split()))
        assert found or before


def test_titles_and_rows_of_a_page_without_empty_lines_stand_apart() -> None:
    long = "The wheel of the mill turned twice a day whenever the pond behind"
    page = f"3 Wheels\n{long}\nthe dam ran out.\nEco 50 min\n{long}\nThe End\n1. Open.\n2. Shut."
    assert with_paragraphs_apart(page) == (
        f"3 Wheels\n\n{long}\nthe dam ran out.\n\nEco 50 min\n\n{long}\nThe End"
        "\n\n1. Open.\n2. Shut."
    )
    assert with_paragraphs_apart("a\n\nb\nc") == "a\n\nb\nc"
    code = "\n".join(["turn(wheel, 2)"] * 9)
    assert with_paragraphs_apart(f"{code}\nOn Wheels of Mills\n{long}").endswith(f"\n\n{long}")
