"""No command of the papers overwrites what it reads."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from crag.errors import DataError
from crag.papers.cli import app

READ = '{"question": "Why?"}\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("bench FILE --data FILE --output link.jsonl", "link.jsonl"),
        *((f"{command} FILE --output link.jsonl", "link.jsonl") for command in (
            "train evaluator", "train critic", "train generator", "train reader",
            "train reader-data", "train encoder", "reflect-data generator",
            "reflect-data critic", "reflect-data pairs",
        )),
        ("reflect-data critic FILE --output ./out/../FILE", "FILE"),
        ("bench a --data out/rows.jsonl --output out", "out/rows.jsonl"),
        ("train evaluator a --output out --set base=./out/../out", "out"),
        ("train critic a --output out --set base=out", "out"),
        ("train reader a --output out --set start=out", "out"),
    ],
)  # fmt: skip
def test_an_output_that_is_read_too_is_refused_and_kept(
    words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for place in ("read.jsonl", "out/rows.jsonl"):
        (tmp_path / place).write_text(READ)
    (tmp_path / "link.jsonl").symlink_to("read.jsonl")
    before = sorted(tmp_path.rglob("*"))
    place = told.replace("FILE", "read.jsonl")
    with pytest.raises(DataError, match=f"{place}: writing it would overwrite .* which is read"):
        CliRunner().invoke(app, words.replace("FILE", "read.jsonl"), catch_exceptions=False)
    assert sorted(tmp_path.rglob("*")) == before
    for place in ("read.jsonl", "out/rows.jsonl"):
        assert (tmp_path / place).read_text() == READ
