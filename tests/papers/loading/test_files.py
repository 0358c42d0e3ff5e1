from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.loading.detect import load_examples
from crag.papers.loading.files import read_lines
from crag.papers.loading.read_log import ReadLog


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"question": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"not UTF-8 \(byte 17\)"):
        load_examples(path, "qa")


def test_byte_order_mark_and_windows_lines_are_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    row = '{"question": "q\\r?", "answers": ["a"]}'
    path.write_bytes(b"\xef\xbb\xbf" + f"{row}\r\n".encode())
    loaded = load_examples(path, "qa")
    assert loaded.examples[0].question == "q\r?"
    assert loaded.notes[:2] == [
        "data.jsonl: removed the byte-order mark",
        "data.jsonl: removed Windows line ends",
    ]


def test_separators_of_lines_within_a_text_do_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"question": "a\u2028b\x85c", "answers": ["a"]}\n', encoding="utf-8")
    assert load_examples(path, "qa").examples[0].question == "a\u2028b\x85c"


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "sources"
    path.write_bytes("one\x0b1\n\ntwo\u2028\x0c2\r\n".encode())
    assert read_lines(path, ReadLog(path)) == ["one\x0b1", "", "two\u2028\x0c2"]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(DataError, match="No such file"):
        read_lines(path, ReadLog(path))
