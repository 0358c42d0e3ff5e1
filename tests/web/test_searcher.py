"""Queries, addresses and what plain text is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import SearchError
from crag.web.search_replies import plain
from crag.web.searcher import query_of


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("one two", "one two"),
        (" one\n\ttwo\0", "one two"),
        ("one two three", "one two"),
        ("one twothree", "one"),
        ("onetwothree", "onetwoth"),
        ("one\ud800 two", "one two"),
    ],
)
def test_queries_are_cut_at_a_word(query: str, expected: str) -> None:
    assert query_of("Service", query, 8) == expected


@given(st.text(max_size=40), st.integers(1, 20))
def test_a_query_is_never_too_long(query: str, longest: int) -> None:
    if not any(character.isprintable() and not character.isspace() for character in query):
        return
    sent = query_of("Service", query, longest)
    assert 0 < len(sent) <= longest
    assert sent == query_of("Service", sent, longest)


@pytest.mark.parametrize("query", ["", " \n", "\0", "\ud800"])
def test_an_empty_query_is_refused(query: str) -> None:
    with pytest.raises(SearchError, match="the query is empty"):
        query_of("Service", query, 8)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<span class="searchmatch">Ada</span>s notes', "Adas notes"),
        ("one<br/>two<p>three</p>", "one two three"),
        ("a < b > c &amp; d &lt;b&gt;", "a < b > c & d <b>"),
        ("vector<string> stays", "vector<string> stays"),
        ("<script>x</script> y", "x y"),
        (None, ""),
        (7, ""),
    ],
)
def test_snippets_have_no_tags(html: object, expected: str) -> None:
    assert plain(html) == expected
