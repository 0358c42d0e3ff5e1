"""The words of a text: names whole and in parts, stems, other scripts."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.index.backends.word_file import TOKENIZER, Change, WordFile, cached_words
from crag.index.contract import Filter
from crag.text.words import asks_for_name, question_words, words


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
    assert asks_for_name(question) is asks


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


def noted(name: str, day: str) -> Document:
    return Document(f"The {name} stands.", id=name, metadata={"source": "/a", "modified": day})


def test_words_follow_what_is_stored(tmp_path: Path) -> None:
    kept, chunks = tmp_path / "words.sqlite3", {}
    with closing(WordFile(kept, "here")) as file:
        for mark, names in {
            "1": ["mill 2026-01-01", "well 2026-01-01"],
            "2": ["mill 2026-03-01"],
        }.items():
            chunks = {one.id: one for one in (noted(*name.split()) for name in names)}
            stored = [(str(one.id), one.metadata) for one in chunks.values()]
            file.follow(mark, stored, lambda ids, held=chunks: [held[one] for one in ids])
            assert file.mark == mark
        assert file.find("what stands", 5, Filter()) == ["mill"]
        assert file.find("what stands", 5, Filter(since="2026-02-01")) == ["mill"]


def test_a_write_that_fails_is_none(tmp_path: Path) -> None:
    kept = tmp_path / "words.sqlite3"
    with closing(WordFile(kept, "here")) as file:
        file.write("1", Change(added=[noted("mill", "2026-01-01")]))
        with closing(sqlite3.connect(kept)) as other:
            other.execute("DROP TABLE state")
        with pytest.raises(DocumentIndexError, match=r"index here: its words in .*words\.sqlite3"):
            file.write("2", Change(added=[noted("well", "2026-01-01")]))
        assert file.find("what stands", 5, Filter()) == ["mill"]


def test_a_cache_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DocumentIndexError, match=r"kept in .*file/crag: .*Set XDG_CACHE_HOME"):
        cached_words("http://127.0.0.1:8000")


def test_ranking_few_chunks_finds_what_ranking_all_does() -> None:
    """All are ranked where as many are asked for as there are."""
    chance = random.Random(35)  # noqa: S311 - no secret
    names = [f"w{number}x" for number in range(120)]
    commonness = [1 / (number + 1) for number in range(len(names))]

    def drawn(most: int) -> str:
        return " ".join(chance.choices(names, commonness, k=chance.randint(1, most)))

    texts = [
        Document(drawn(40), id=str(place), metadata={"kind": chance.choice(["md", "rst"])})
        for place in range(1500)
    ]
    stored = WordFile(None, "here")
    stored.write("mark", Change(added=texts))
    for _ in range(150):
        question = " ".join([*chance.choices(names, k=chance.randint(1, 3)), drawn(4)])
        where, k = Filter(kind=chance.choice(["", "md"])), chance.choice([1, 3, 10])
        assert stored.find(question, k, where) == stored.find(question, len(texts), where)[:k]
