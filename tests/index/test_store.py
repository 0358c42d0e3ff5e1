"""Opening an index: what is there, what is not, and what is something else."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag.errors import (
    DocumentIndexError,
    EmbeddingMismatchError,
    IndexNotFoundError,
)
from crag.index import DocumentIndex, IndexRetriever, index_paths
from crag.index.backends.sqlite_file import FILE


@pytest.fixture
def filled(folder: Path, index: DocumentIndex) -> DocumentIndex:
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"Text {number}.")
    index_paths([folder], index)
    return index


def test_a_missing_index_is_told_and_not_created(index: DocumentIndex) -> None:
    assert not index.exists()
    for use in (index.open, index.count, lambda: IndexRetriever(index).invoke("?")):
        with pytest.raises(IndexNotFoundError) as told:
            use()
        assert str(told.value).endswith(f"crag index PATH… --index {index.location}")
    assert not Path(index.location).exists()


def test_an_empty_index(filled: DocumentIndex, folder: Path) -> None:
    index_paths([folder], filled, remove=True)
    assert filled.exists()
    with pytest.raises(IndexNotFoundError, match="is empty"):
        filled.open()


def test_another_embedding_model(
    filled: DocumentIndex, folder: Path, make_embeddings: Callable[..., Any]
) -> None:
    other = DocumentIndex(filled.location, make_embeddings("another"))
    with pytest.raises(EmbeddingMismatchError, match="'fake', but 'another'"):
        other.open()
    with pytest.raises(EmbeddingMismatchError):
        index_paths([folder], other)


def write_garbage(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)


def truncate(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 3])


def write_other_database(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE crag_index (other TEXT)")
        database.commit()


@pytest.mark.parametrize(
    ("names", "text", "question"),
    [
        ([str(number) for number in range(1000, 1060)], "It stops with {}.", "Why {}?"),
        (
            [f"Quer{one}{other}o" for one in "bdfgklmnst" for other in "aeioux"],
            "Maschine {} bleibt stehen.",
            "Welche Ursache hat wohl {} hier gehabt?",
        ),
    ],
)
def test_words_count_as_much_where_meaning_cannot_tell(
    index: DocumentIndex, folder: Path, embeddings: Any, names: list[str], text: str, question: str
) -> None:
    embeddings.languages = {"en"}
    for name in names:
        (folder / f"{name}.txt").write_text(text.format(name))
    index_paths([folder], index)
    for name in names[::10]:
        first = index.search(question.format(name), 2)
        assert text.format(name) in [found.page_content for found in first]


@pytest.mark.parametrize("damage", [write_garbage, truncate, write_other_database])
def test_a_damaged_index_is_told(filled: DocumentIndex, damage: Callable[[Path], None]) -> None:
    filled.close()
    damage(Path(filled.location) / FILE)
    with pytest.raises(DocumentIndexError, match="delete the folder and index again"):
        filled.open().search("Text 3.")


@pytest.mark.parametrize(
    "change",
    ["UPDATE crag_index SET schema = schema - 1", "ALTER TABLE crag_index RENAME TO crag_stamp"],
)
def test_an_index_of_another_version_is_told(
    filled: DocumentIndex, folder: Path, change: str
) -> None:
    filled.close()
    with closing(sqlite3.connect(Path(filled.location) / FILE)) as database:
        database.execute(change)
        database.commit()
    for use in (filled.open, lambda: index_paths([folder], filled)):
        with pytest.raises(DocumentIndexError, match="another version of crag"):
            use()


def test_a_file_is_no_index(tmp_path: Path, folder: Path, embeddings: Any) -> None:
    (folder / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    index = DocumentIndex(tmp_path / "file", embeddings)
    with pytest.raises(DocumentIndexError, match="an index is a folder"):
        index.open()
    with pytest.raises(DocumentIndexError, match="an index is a folder"):
        index_paths([folder], index)
