"""Files in the place of the web: what is found, and what cannot be read."""

import json
from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.bench.corpus import CorpusSearcher


def texts(folder: Path, *entries: object) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n\n", encoding="utf-8")
    return path


def test_the_best_text_comes_first_and_whole(tmp_path: Path) -> None:
    path = texts(
        tmp_path,
        {"title": "Boats", "text": "A boat floats. " * 30},
        {"title": "Barns", "text": "A barn is red."},
        {"title": "Barns", "text": "A barn is red."},
    )
    searcher = CorpusSearcher([path])
    searcher.load()
    (hit,) = searcher.search("What colour has a Barn?", 1)
    assert (hit.title, hit.text) == ("Barns", "A barn is red.")
    assert [one.title for one in searcher.search("barn", 5)] == ["Barns"]
    assert repr(searcher) == "BM25 over texts.jsonl"


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"{", "line 1"), (b'{"title": "no text"}', "line 1"), (b"[1]", "line 1"), (b"\xff", "UTF-8")],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"texts\.jsonl") as raised:
        CorpusSearcher([path]).load()
    assert told in str(raised.value)
