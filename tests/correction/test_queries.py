"""Queries that search services take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.correction.queries import cut, keywords, read_query, without_operators


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Henry Feilden, occupation", "Henry Feilden, occupation"),
        ('"Ada Lovelace,\n first program"', "Ada Lovelace, first program"),
        ("Query: Ada Lovelace", "Ada Lovelace"),
        ("search query: Ada\n", "Ada"),
        ("Keywords:\nAda\nprogram", "Ada, program"),
        ("site:wikipedia.org Ada Lovelace", "Ada Lovelace"),
        ("Ada -Byron +program", "Ada Byron program"),
        ("(Ada OR Babbage) AND engine", "Ada Babbage engine"),
        ("intitle:Ada filetype:pdf notes", "notes"),
        ("!w Ada :en", "w Ada en"),
        ("2:1 victory, 3-2 final", "2:1 victory, 3-2 final"),
        ("C++ templates, state-of-the-art", "C++ templates, state-of-the-art"),
        ("AC/DC albums", "AC/DC albums"),
        ("エイダ・ラブレス", "エイダ・ラブレス"),
        ("Sure! Here's the rewritten version: barn rent", "barn rent"),
        ("Here are the keywords:\nbarn, rent\n\nLet me know if you need more!", "barn, rent"),
        ("Natürlich! Hier ist die Suchanfrage: barn, rent\n\nDas hilft hoffentlich.", "barn, rent"),
        ("好的，搜索查询：barn, rent", "barn, rent"),
        ('```json\n{"query": "barn, rent"}\n```', "barn, rent"),
        ("**Web search query:** barn", "barn"),
        ("1. barn\n2. rent", "barn, rent"),
        ("Star Wars: first film", "Star Wars: first film"),
        ("barn rent: first year", "barn rent: first year"),
    ],
)
def test_replies_that_hold_a_query(reply: str, query: str) -> None:
    assert read_query(reply, question="How much is the rent of a barn?") == query


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n ",
        '""',
        "...",
        "query:",
        "site:example.org",
        "word " * 33,
        "\n".join(["a line"] * 20),
    ],
)
def test_replies_that_hold_none(reply: str) -> None:
    assert read_query(reply) is None


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is Henry Feilden's occupation?", "Henry Feilden occupation"),
        ("In what city was Billy Carlson born?", "city Billy Carlson born"),
        ("Who is Ada Lovelace?", "Ada Lovelace"),
        ("What sport does the Kiribati men's national team play?",
         "sport Kiribati men national team play"),
        ("Who are they?", "Who are they?"),
        ("Was war der erste Computer?", "war der erste Computer"),
        ("site:evil.org what is a kettle", "kettle"),
        ("Is U.S. steel cheaper than E.U. steel?", "U.S steel cheaper E.U"),
        ("東京はどこですか?", "東京はどこですか"),
    ],
)  # fmt: skip
def test_keywords(question: str, found: str) -> None:
    assert keywords(question) == found


@given(st.text(max_size=900))
def test_no_query_has_lines_or_only_marks(text: str) -> None:
    query = read_query(text)
    assert "\n" not in keywords(text) + (query or "")
    assert query is None or (query.strip() == query and any(c.isalnum() for c in query))


@given(st.text(alphabet="ab -+!:()\"'|", max_size=60))
def test_taking_operators_out_again_changes_nothing(text: str) -> None:
    once = without_operators(text)
    assert not once.startswith(("-", "+", "!"))
    assert '"' not in once
    assert without_operators(without_operators(once)) == without_operators(once)


def test_a_cut_falls_between_words() -> None:
    cuts = [cut("one two three", 9), cut("one two three", 7), cut("unbreakable", 4)]
    assert [*cuts, cut("short", 400)] == ["one two", "one two", "unbr", "short"]
