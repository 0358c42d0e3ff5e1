"""A citation to nothing is removed; the others stand."""

from hypothesis import given
from hypothesis import strategies as st

from crag.citations import validate
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


@given(st.text(alphabet="a [],.0123456789`", max_size=80))
def test_what_is_left_cites_only_what_there_is(answer: str) -> None:
    result = validate(answer, AVAILABLE)
    again = validate(result.answer, AVAILABLE)
    assert {citation["number"] for citation in result.citations} <= {1, 2, 3}
    assert again.citations == result.citations or result.removed
