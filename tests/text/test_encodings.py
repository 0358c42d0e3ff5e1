"""Encodings of files and of web pages; `tests/web/test_transcribe.py` has those of pages."""

import pytest

from crag.errors import ContentError
from crag.text.encodings import decoded, likeliest, marked, storable

TEXT = "Die Mühle läuft für Königin und Käufer, so heißt es in der Straße. "


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_plain_text(encoding: str) -> None:
    assert decoded((TEXT * 5).encode(encoding), "text/plain") == TEXT * 5


def test_a_meta_element_counts_in_html_only() -> None:
    body = f"<meta charset='iso-8859-5'> {TEXT}".encode()
    assert TEXT in decoded(body, "text/plain")
    assert TEXT in decoded(body, "text/markdown; charset=utf-8")
    declared = f"<meta charset='iso-8859-1'> {TEXT}".encode("latin-1")
    assert TEXT in decoded(declared, "text/html")


@pytest.mark.parametrize("body", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(256)) * 9, b"\0" * 9])
def test_binary_content(body: bytes) -> None:
    with pytest.raises(ContentError, match="looks binary"):
        decoded(body, "text/plain")


def test_marks() -> None:
    assert [marked("a".encode(name)) for name in ("utf-8-sig", "utf-16", "utf-32", "utf-8")] == [
        "utf-8-sig", "utf-16", "utf-32", None,
    ]  # fmt: skip


def test_the_likeliest_encoding() -> None:
    body = (TEXT * 5).encode("cp1252")
    assert body.decode(likeliest(body)) == TEXT * 5


def test_what_cannot_be_stored_is_replaced_one_for_one() -> None:
    assert storable("a\ud800b\0c\N{SNOWMAN}") == "a?b\ufffdc\N{SNOWMAN}"
