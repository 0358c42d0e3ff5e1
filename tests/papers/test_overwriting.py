"""No command of the papers overwrites what it reads."""

from pathlib import Path

import pytest

from tests import commands

WRITING = {
    "bench FILE": ["--data", "FILE"],
    "train evaluator FILE": [], "train critic FILE": [], "train generator FILE": [],
    "train reader FILE": [], "train reader-data FILE": [],
    "train encoder FILE": [], "reflect-data generator FILE": [], "reflect-data critic FILE": [],
    "reflect-data pairs FILE": [],
}  # fmt: skip
"""Every command with --output, and what else it needs."""


@pytest.mark.parametrize("command", WRITING)
def test_an_output_that_is_read_too_is_refused_and_kept(command: str, tmp_path: Path) -> None:
    name = "./link.jsonl"
    read = tmp_path / "read.jsonl"
    read.write_text('{"question": "Why?"}\n')
    (tmp_path / "link.jsonl").symlink_to(read)
    before = sorted(tmp_path.rglob("*"))
    words = [word.replace("FILE", read.name) for word in command.split() + WRITING[command]]
    done = commands.crag(*words, "--output", name, folder=tmp_path)
    assert done.returncode == 2
    assert f"{Path(name)}: writing it would overwrite read.jsonl, which is read" in done.stderr
    assert read.read_text() == '{"question": "Why?"}\n'
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("bench a --data out/rows.jsonl --output out", "out/rows.jsonl: writing it would"),
        ("bench a --data out/rows.jsonl --output b --cache out/rows.jsonl", "out/rows.jsonl: wri"),
        ("train reader-data a --with out/rows.jsonl --output out/rows.jsonl", "out/rows.jsonl: wr"),
        ("train evaluator a --output out --set base=./out/../out", "out: writing it would overwr"),
        ("train critic a --output out --set base=out", "out: writing it would overwrite out, whi"),
        ("train reader a --output out --set start=out", "out: writing it would overwrite out, wh"),
    ],
)
def test_what_is_read_is_found_in_folders_and_settings(
    words: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.jsonl").write_text("{}\n")
    done = commands.crag(*words.split(), folder=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert (tmp_path / "out" / "rows.jsonl").read_text() == "{}\n"
