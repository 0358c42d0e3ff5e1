from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError
from crag.papers.loading.detect import load_examples

Write = Callable[..., Path]


def test_items_of_alce(write: Write, asqa_item: dict[str, Any]) -> None:
    loaded = load_examples(write([asqa_item], "asqa.json"), "asqa")
    example = loaded.examples[0]
    assert example.id == "-42"
    assert example.answers == (("France", "French team"), ("Brazil",))
    assert example.extra["references"] == [
        "France won in 1998, Brazil in 2002.",
        "In 1998 it was France; in 2002 Brazil.",
    ]
    assert example.extra["reference"] == "France won in 1998, Brazil in 2002."
    assert example.documents[0].metadata["title"] == "World Cup"
    assert loaded.notes == ["asqa.json: it has 1 items; the published one has 948"]


def test_items_under_data_as_self_rag_ships_them(tmp_path: Path, asqa_item: dict[str, Any]) -> None:
    import json

    path = tmp_path / "asqa.json"
    ctxs = [{"title": "Own", "text": "Its own passage."}]
    path.write_text(json.dumps({"data": [{**asqa_item, "ctxs": ctxs}]}), encoding="utf-8")
    example = load_examples(path, "asqa").examples[0]
    assert [one.metadata["title"] for one in example.documents] == ["Own"]


def test_a_truncated_document_is_an_error(write: Write, asqa_item: dict[str, Any]) -> None:
    path = write([asqa_item], "asqa.json")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="download it again"):
        load_examples(path, "asqa")
