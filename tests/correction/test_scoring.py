"""The string in which an evaluator reads a titled passage."""

from hypothesis import given
from hypothesis import strategies as st

from crag.correction.scoring import split_title, with_title
from crag.parts import Passage


@given(st.text(max_size=8), st.text(max_size=12))
def test_a_string_is_split_where_it_was_joined(title: str, text: str) -> None:
    whole = with_title(title, text)
    found = split_title(whole)
    assert with_title(found.title, found.text) == whole
    if title and text.strip() and " // " not in f"{title} // "[:-3]:
        assert found == Passage(title, text)
