from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.loading.detect import load_examples


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
