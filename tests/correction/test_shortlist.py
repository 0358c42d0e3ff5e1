"""A shortlist by words alone."""

from hypothesis import given
from hypothesis import strategies as st

from crag.correction.shortlist import shortlist

words = st.lists(st.sampled_from(["ada", "program", "kettle", "the", "1843"]), max_size=6)
texts = st.lists(words.map(" ".join), max_size=12)


def test_rare_words_of_the_question_count_most() -> None:
    found = ["a program", "a program", "a program", "by Ada", "a kettle"]
    assert shortlist("Which program is by Ada?", found, 2, list("aaaaa")) == [0, 3]


def sources_of(found: list[str]) -> list[str]:
    return [str(place % 3) for place in range(len(found))]


def test_a_page_full_of_the_words_does_not_crowd_out_another() -> None:
    stuffed = ["Ada program Ada program"] * 9
    found = [*stuffed, "Something about Ada.", "And something else."]
    assert shortlist("Which program is by Ada?", found, 3, [*"a" * 9, "b", "b"]) == [0, 1, 9]


@given(words.map(" ".join), texts, st.integers(1, 12))
def test_places_are_in_order_and_no_more_than_asked_for(
    question: str, found: list[str], most: int
) -> None:
    places = shortlist(question, found, most, sources_of(found))
    assert places == sorted(set(places))
    assert len(places) == min(most, len(found))
