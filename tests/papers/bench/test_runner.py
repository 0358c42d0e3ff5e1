"""A run: resumed without repeating anything, with failures marked, and replies paid for once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.bench.cache import Cache, CachedSearcher, cached
from crag.papers.bench.corpus import CorpusSearcher
from crag.papers.bench.experiments import plan
from crag.papers.bench.report import outcomes, results
from crag.papers.bench.runner import Answerer, RowFile, RunResult, run
from crag.papers.bench.summary import summarise
from crag.parts import Passage, is_reading
from crag.runtime.evaluator_calls import scores_of
from crag.testing import FakeEvaluator, FakeReadingEvaluator, FakeSearcher
from tests.papers.bench.chat_server import ChatServer, chatting
from tests.papers.bench.runs import HITS, answerer, examples, experiment, variant

COMPARED = experiment(variant("rag"), variant("crag"), variant("binary_llm"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


def ran(folder: Path, by: Answerer, *, again: bool = False, concurrency: int = 3) -> RunResult:
    units = plan(COMPARED, examples(folder))
    with RowFile(folder / "rows.jsonl") as rows:
        return run(units, rows, by, again=again, concurrency=concurrency)


def table(folder: Path) -> str:
    with RowFile(folder / "rows.jsonl") as rows:
        lines = summarise(COMPARED, examples(folder), rows.rows)
    return results(COMPARED, lines) + outcomes(lines)


def test_every_unit_leaves_one_row(tmp_path: Path, server: ChatServer) -> None:
    ended = ran(tmp_path, answerer(server.url))
    assert (ended.units, ended.answered, ended.failed) == (12, 12, 0)
    assert "| crag | 75.0 % (25.0 to 100.0)" in table(tmp_path)
    assert "| crag | 4 | 4 | 0 | 0 | 0 | 2 / 1 / 1 |" in table(tmp_path)


def test_what_is_finished_is_not_asked_again(tmp_path: Path, server: ChatServer) -> None:
    ran(tmp_path, answerer(server.url))
    first, asked = table(tmp_path), len(server.prompts)
    ended = ran(tmp_path, answerer(server.url))
    assert (ended.resumed, ended.answered) == (12, 0)
    assert len(server.prompts) == asked
    assert table(tmp_path) == first


def test_lost_rows_are_written_again_from_the_cache(tmp_path: Path, server: ChatServer) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    ran(tmp_path, answerer(server.url, cache=cache))
    first, asked = table(tmp_path), len(server.prompts)
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_text("\n".join(lines[:5]) + "\n" + lines[5][:30])
    ended = ran(tmp_path, answerer(server.url, cache=cache))
    cache.close()
    assert (ended.resumed, ended.answered) == (5, 7)
    assert len(server.prompts) == asked
    assert table(tmp_path) == first


def test_scores_and_hits_are_asked_for_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    evaluator, searcher = FakeEvaluator({"a": 0.5, "b": float("nan")}), FakeSearcher(HITS)
    judge = cached(evaluator, cache, "fake")
    assert judge.score("q", ["a", "a", "b"])[:2] == [0.5, 0.5]
    assert judge.score("q", ["a"]) == [0.5]
    judge.score("q", ["b"])
    assert [texts for _, texts in evaluator.calls] == [["a", "b"], ["b"]]
    assert scores_of(judge, "q", [Passage("", "a")]) == [0.5]
    assert len(evaluator.calls) == 2
    assert not is_reading(judge)
    assert judge.thresholds == evaluator.thresholds
    hits = CachedSearcher(searcher, cache, "fake")
    assert hits.search("red", 5) == HITS
    hits.search("red", 1)
    assert searcher.queries == ["red", "red"]
    cache.close()


def test_an_evaluator_that_reads_does_so_with_a_cache_too(tmp_path: Path) -> None:
    """The strips of a benchmark are scored as those of `crag ask`: by readings of documents."""
    cache, evaluator = Cache(tmp_path / "cache.sqlite"), FakeReadingEvaluator(0.9, "red")
    judge = cached(evaluator, cache, "reads")
    assert is_reading(judge)
    assert judge.quote_threshold == evaluator.quote_threshold
    passages = [Passage("", "A red one."), Passage("", "A blue one."), Passage("", "A red one.")]
    read = judge.read("q", passages)
    read[0]["evidence"] = ""
    again = cached(evaluator, cache, "reads")
    assert is_reading(again)
    readings = FakeReadingEvaluator(0.9, "red").read("q", passages)
    assert again.read("q", passages) == judge.read("q", passages) == readings
    assert len(evaluator.calls) == 1
    cache.close()


def test_no_key_enters_the_cache(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    cache = Cache(tmp_path / "cache.sqlite")
    ran(tmp_path, answerer(server.url, cache=cache))
    cache.close()
    assert all(b"very-secret" not in file.read_bytes() for file in tmp_path.glob("*"))


def test_rows_of_another_program_are_not_mixed_in(tmp_path: Path, server: ChatServer) -> None:
    ran(tmp_path, answerer(server.url))
    changed = Answerer(replace(answerer(server.url).resources, program="changed"))
    ended = ran(tmp_path, changed)
    assert (ended.resumed, ended.answered) == (0, 12)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 24


def test_a_file_that_another_run_writes_is_refused_and_left_alone(tmp_path: Path) -> None:
    ran(tmp_path, answerer(None))
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        before = path.read_bytes()
        with pytest.raises(DataError, match="another run is writing to it"):
            RowFile(path)
        assert path.read_bytes() == before
        assert len(file.rows) == 8


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
