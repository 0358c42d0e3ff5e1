"""A run: resumed without repeating anything, with failures marked, and replies paid for once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crag.papers.bench.corpus import CorpusSearcher
from crag.papers.bench.experiments import plan
from crag.papers.bench.report import outcomes, results
from crag.papers.bench.resources import asked_once
from crag.papers.bench.runner import Answerer, RowFile, RunResult, run
from crag.papers.bench.summary import summarise
from crag.parts import Passage, is_reading
from crag.runtime.calls import readings_of
from crag.testing import FakeEvaluator, FakeReadingEvaluator
from tests.papers.bench.runs import ChatServer, answerer, chatting, examples, experiment, variant

COMPARED = experiment(variant("rag"), variant("crag"), variant("binary_llm"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


def ran(folder: Path, by: Answerer) -> RunResult:
    units = plan(COMPARED, examples(folder))
    with RowFile(folder / "rows.jsonl") as rows:
        return run(units, rows, by, concurrency=3)


def table(folder: Path) -> str:
    with RowFile(folder / "rows.jsonl") as rows:
        lines = summarise(COMPARED, examples(folder), rows.rows)
    return results(lines) + outcomes(lines)


def test_every_unit_leaves_one_row(tmp_path: Path, server: ChatServer) -> None:
    ended = ran(tmp_path, answerer(server.url))
    assert (ended.units, ended.answered, ended.failed) == (12, 12, 0)
    assert "| crag | 75.0 % (25.0 to 100.0)" in table(tmp_path)
    assert "| crag | 4 | 4 | 0 | 0 | 0 | 2 / 1 / 1 |" in table(tmp_path)


def test_a_line_that_was_cut_off_and_failed_rows_are_answered_again(
    tmp_path: Path, server: ChatServer
) -> None:
    ran(tmp_path, answerer(server.url))
    first = table(tmp_path)
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    lines[0] = lines[0].replace('"outcome": "answered"', '"outcome": "failed"')
    (tmp_path / "rows.jsonl").write_text("\n".join(lines[:5]) + "\n" + lines[5][:30])
    ended = ran(tmp_path, answerer(server.url))
    assert (ended.resumed, ended.answered) == (4, 8)
    assert table(tmp_path) == first


@pytest.mark.parametrize("reads", [False, True])
def test_an_evaluator_is_asked_once_about_each_text(*, reads: bool) -> None:
    evaluator = FakeReadingEvaluator(0.9, "red") if reads else FakeEvaluator({"red": 0.5})
    judge = asked_once(evaluator)
    assert is_reading(judge) is reads
    assert judge.thresholds == evaluator.thresholds
    passages = [Passage("", "A red one."), Passage("", "A blue one."), Passage("", "A red one.")]
    readings = readings_of(judge, "q", passages)
    assert readings == readings_of(judge, "q", passages) == readings_of(evaluator, "q", passages)
    assert len(evaluator.calls) == 2  # One of the judge's, and that of the line above.


def test_rows_of_another_program_are_not_mixed_in(tmp_path: Path, server: ChatServer) -> None:
    ran(tmp_path, answerer(server.url))
    changed = Answerer(replace(answerer(server.url).resources, program="changed"))
    ended = ran(tmp_path, changed)
    assert (ended.resumed, ended.answered) == (0, 12)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 24


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
    (hit,) = searcher.search("What colour has a Barn?", 1)
    assert (hit.title, hit.text) == ("Barns", "A barn is red.")
    assert [one.title for one in searcher.search("barn", 5)] == ["Barns"]
    assert repr(searcher) == "BM25 over texts.jsonl"
