"""The words of a text: names whole and in parts, stems, other scripts."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.index.backends.sqlite_file import TOKENIZER
from crag.text.words import exact_names, question_words, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`httpx.ProxyError`,", ["httpx.proxyerror", "httpx", "proxi", "error"]),
        ("(--no-color)", ["--no-color", "no", "color"]),
        ("E_404!", ["e_404", "e", "404"]),
        ("C++ and C#.", ["c++", "c", "and", "c#", "c"]),
        ("__init__.py", ["__init__.py", "init", "py"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("PromQL JITs", ["promql", "jit"]),
        ("the cat's toys don’t run", ["the", "cat", "toy", "don", "run"]),
        ("Füße naïve", ["fuss", "naiv"]),
        ("東京の天気 x", ["東京", "京の", "の天", "天気", "x"]),
        ("月", ["月"]),
        ("Python言語", ["python", "言語"]),
        ("데비안은 v2", ["데비", "비안", "안은", "v2"]),
        ("हिन्दी", ["हिन्दी"]),
        ("?! …", []),
        ("a" * 200, ["a" * 100]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert list(words(text)) == found


def test_stop_words_are_not_searched_for_unless_there_are_no_others() -> None:
    assert question_words("Why does the very server fail before a fail?") == [
        "server",
        "fail",
        "befor",
    ]
    assert question_words("to be or not to be") == ["to", "be", "or", "not"]


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What does E_404 mean?", True),
        ("error 1045", True),
        ("Why does httpx.ProxyError come?", True),
        ("What is --no-color for?", True),
        ("Where is $HOME?", True),
        ("Is C++ faster?", True),
        ("Is the light on/off?", False),
        ("Which long-life milk... do you sell, and why?", False),
        ("Why does the server fail?", False),
    ],
)
def test_a_question_asks_for_a_name(question: str, asks: bool) -> None:
    assert bool(exact_names(question)) is asks


@given(st.text(max_size=80))
def test_any_word_is_found_by_fts(text: str) -> None:
    """The tokenizer of SQLite takes each word as one token, so that it is found as it is."""
    found = list(words(text))
    assert all(not set(word) & set("'\"\\ \t\n") and len(word) <= 100 for word in found)
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = {TOKENIZER})")
        database.execute("INSERT INTO t VALUES (?)", (" ".join(found),))
        for word in found:
            query = "SELECT count(*) FROM t WHERE t MATCH ?"
            assert database.execute(query, (f'"{word}"',)).fetchone() == (1,)
        database.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, 'row')")
        stored = {row[0] for row in database.execute("SELECT term FROM v")}
        assert stored == set(found)
    finally:
        database.close()
