"""`crag train reader-data`, on a few rows."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from crag.papers.cli import app
from crag.papers.loading.records import read_records
from crag.papers.reader.rows import ReadingRow
from tests.reflective import articles, written


def train(*arguments: object) -> dict[str, Any]:
    given = ["train", *map(str, arguments), "--json"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_question_sets_become_rows(tmp_path: Path) -> None:
    data = written(tmp_path / "squad.jsonl", articles(24))
    dev = written(tmp_path / "dev.jsonl", articles(24)[:4])
    output = tmp_path / "rows.jsonl"
    told = train("reader-data", data, "--dev", dev, "--output", output)
    rows = read_records(output, ReadingRow)
    assert told["rows"] == len(rows) == sum(told["sources"].values())
    left_out = {row["title"] for row in articles(24)[:4]}
    assert not left_out & {row.title for row in rows if row.source != "elsewhere"}
    train("reader-data", data, "--dev", dev, "--output", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == output.read_text()
    few = train("reader-data", data, "--each", 3, "--output", tmp_path / "few.jsonl")
    assert set(few["sources"].values()) == {3}
    mixing = ["--with", output, "--most", 3, "--output", tmp_path / "mixed.jsonl"]
    assert train("reader-data", data, *mixing)["rows"] == 3 + len(rows)
