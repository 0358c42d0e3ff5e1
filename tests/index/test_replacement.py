"""Replacing one file: it and the index change, or neither does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DocumentIndexError, EmbeddingMismatchError, SourceError
from crag.index import DocumentIndex, index_paths
from crag.index.replacement import prepared, replace_file


def stage(folder: Path, name: str, text: str) -> Path:
    """Write a file that is to take the place of another one of its name."""
    staging = folder.parent / "staging"
    staging.mkdir(exist_ok=True)
    (staging / name).write_text(text)
    return staging / name


def texts(index: DocumentIndex) -> list[str]:
    return sorted(chunk.page_content for chunk in index.search("kettle boils", 9, by="words"))


def test_a_file_is_replaced_without_embedding_it_again(
    folder: Path, index: DocumentIndex, embeddings: Any
) -> None:
    file = folder / "notes.jsonl"
    file.write_text('{"text": "An old kettle."}')
    index_paths([folder], index)
    staged = stage(folder, file.name, '{"text": "A kettle boils."}\n{"text": "It boils."}')
    calls: list[tuple[int, int | None, str]] = []
    documents = prepared(staged, file, index, progress=lambda *call: calls.append(call))
    assert calls == [(2, 2, str(file))]
    asked = len(embeddings.embedded)
    report = replace_file(staged, file, documents, index)
    assert (report.added, report.changed, len(embeddings.embedded)) == (1, 1, asked)
    assert texts(index) == ["A kettle boils.", "It boils."]
    assert file.read_text().startswith('{"text": "A kettle boils')


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "\0", "a.txt: its content looks binary"),
        ("a.txt", " ", "a.txt: empty"),
        ("a.jsonl", '{"text": "A kettle."}\n{"te', "a.jsonl: line 2: not JSON"),
    ],
)
def test_what_cannot_be_read_replaces_nothing(
    folder: Path, index: DocumentIndex, name: str, text: str, told: str
) -> None:
    with pytest.raises(SourceError, match=told):
        prepared(stage(folder, name, text), folder / name, index)


@pytest.mark.parametrize("before", ["An old kettle.", None])
def test_a_file_comes_back_where_the_index_cannot_be_written(
    folder: Path, index: DocumentIndex, make_embeddings: Callable[..., Any], before: str | None
) -> None:
    file = folder / "a.txt"
    (folder / "b.txt").write_text("A kettle boils.")
    if before:
        file.write_text(before)
    index_paths([folder], index)
    staged = stage(folder, file.name, "A new kettle boils.")
    longer = DocumentIndex(index.location, make_embeddings(size=9))
    documents = prepared(staged, file, longer)
    with pytest.raises(EmbeddingMismatchError):
        replace_file(staged, file, documents, index)
    assert (file.read_text() if file.exists() else None) == before
    assert texts(index) == sorted(filter(None, [before, "A kettle boils."]))
    with index.writing(), pytest.raises(DocumentIndexError, match="another run is writing"):
        replace_file(stage(folder, file.name, "x"), file, documents, longer)
