"""Rows on disk: whole or not at all, and the last of a key counts."""

import asyncio
import json
from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.bench.rows import Row, RowFile
from crag.papers.bench.units import Unit
from tests.papers.bench.runs import answerer, examples, variant


@pytest.fixture
def row(tmp_path: Path) -> Row:
    unit = Unit(variant("rag"), examples(tmp_path)[0], {}, 0)
    return asyncio.run(answerer(None).answer(unit))


def test_rows_come_back_as_they_were(tmp_path: Path, row: Row) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    other: Row = {**row, "key": "other", "answer": "“ü”\u2028"}
    with RowFile(path) as file:
        file.append(row)
        file.append(other)
        assert list(file.rows.values()) == [row, other]
    with RowFile(path) as file:
        assert list(file.rows.values()) == [row, other]


def test_what_a_killed_run_left_unfinished_is_cut_off(tmp_path: Path, row: Row) -> None:
    path = tmp_path / "rows.jsonl"
    whole = json.dumps(row).encode() + b"\n"
    path.write_bytes(whole + whole[:40])
    with RowFile(path) as file:
        assert list(file.rows) == [row["key"]]
        file.append({**row, "key": "next"})
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [
        row["key"],
        "next",
    ]


def test_a_file_that_another_run_writes_is_refused_and_left_alone(tmp_path: Path, row: Row) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        file.append(row)
        with path.open("ab") as writing:
            writing.write(b'{"key": "half of a line')
        with pytest.raises(DataError, match="another run is writing to it"):
            RowFile(path)
        assert path.read_bytes().endswith(b"half of a line")
    with RowFile(path) as file:
        assert list(file.rows) == [row["key"]]
