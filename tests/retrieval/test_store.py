"""Opening an index: what is there, what is not, and what is something else."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.errors import (
    DocumentIndexError,
    EmbeddingMismatchError,
    EmptyIndexError,
    IndexNotFoundError,
)
from crag.retrieval import DocumentIndex, IndexRetriever, index_paths
from crag.retrieval.store import embedding_name


@pytest.fixture
def filled(folder: Path, index: DocumentIndex) -> DocumentIndex:
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"Text {number}.")
    index_paths([folder], index)
    return index


def test_a_missing_index_is_told_and_not_created(index: DocumentIndex) -> None:
    assert not index.exists()
    for use in (index.open, index.count, lambda: IndexRetriever(index).invoke("?")):
        with pytest.raises(IndexNotFoundError, match="crag index PATH"):
            use()
    assert not Path(index.location).exists()


def test_an_existing_folder_without_index_is_left_alone(tmp_path: Path, embeddings: Any) -> None:
    with pytest.raises(IndexNotFoundError):
        DocumentIndex(tmp_path, embeddings).open()
    assert not list(tmp_path.iterdir())


def test_an_empty_index(filled: DocumentIndex, folder: Path) -> None:
    index_paths([folder], filled, remove=True)
    assert filled.exists()
    with pytest.raises(EmptyIndexError, match="is empty"):
        filled.open()


def test_another_embedding_model(
    filled: DocumentIndex, folder: Path, make_embeddings: Callable[..., Any]
) -> None:
    other = DocumentIndex(filled.location, make_embeddings("another"))
    with pytest.raises(EmbeddingMismatchError, match="'fake', but 'another'"):
        other.open()
    with pytest.raises(EmbeddingMismatchError):
        index_paths([folder], other)


def write_garbage(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 1000)


def write_nothing(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"")


def truncate(folder: Path) -> None:
    data = (folder / "chroma.sqlite3").read_bytes()
    (folder / "chroma.sqlite3").write_bytes(data[: len(data) // 3])


def write_other_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").unlink()
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.execute("CREATE TABLE collections (other TEXT)")
        database.commit()


@pytest.mark.parametrize("damage", [write_garbage, write_nothing, truncate, write_other_database])
def test_a_damaged_index_is_told(filled: DocumentIndex, damage: Callable[[Path], None]) -> None:
    filled.close()
    damage(Path(filled.location))
    with pytest.raises(DocumentIndexError, match=r"(?i)delete the folder and index again"):
        filled.open()


def test_a_file_is_no_index(tmp_path: Path, folder: Path, embeddings: Any) -> None:
    (folder / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    index = DocumentIndex(tmp_path / "file", embeddings)
    with pytest.raises(DocumentIndexError, match="an index is a folder"):
        index.open()
    with pytest.raises(DocumentIndexError, match="an index is a folder"):
        index_paths([folder], index)


def test_two_runs_do_not_write_at_once(filled: DocumentIndex, folder: Path) -> None:
    second = DocumentIndex(filled.location, filled.embeddings)
    with filled.writing(), pytest.raises(DocumentIndexError, match="another run is writing"):
        index_paths([folder], second)
    assert index_paths([folder], second).unchanged == 20


def test_the_index_opens_again_after_closing(filled: DocumentIndex, folder: Path) -> None:
    retriever = IndexRetriever(filled)
    assert retriever.invoke("a")
    filled.close()
    assert retriever.invoke("a")
    (folder / "new.txt").write_text("New.")
    index_paths([folder], filled)
    assert retriever.invoke("new // New.")[0].page_content == "New."


def test_k(filled: DocumentIndex) -> None:
    retriever = IndexRetriever(filled, k=3)
    assert len(retriever.invoke("a")) == 3
    assert len(retriever.invoke("a", k=5)) == 5
    assert len(retriever.invoke("a", k=1000)) == 20
    assert [found.id for found in retriever.invoke("a")] == [
        found.id for found in retriever.invoke("a", k=5)[:3]
    ]


async def test_async(filled: DocumentIndex) -> None:
    assert len(await IndexRetriever(filled).ainvoke("a", k=2)) == 2


def test_eight_threads_ask_at_once(filled: DocumentIndex) -> None:
    filled.close()
    retriever = IndexRetriever(filled, k=4)
    together = threading.Barrier(8)

    def ask(number: int) -> list[str | None]:
        together.wait()
        return [found.id for found in retriever.invoke(f"question {number % 4}")]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert answers == [ask_alone(retriever, number) for number in range(8)]


def ask_alone(retriever: IndexRetriever, number: int) -> list[str | None]:
    return [found.id for found in retriever.invoke(f"question {number % 4}")]


def test_an_index_of_another_program(tmp_path: Path, embeddings: Any) -> None:
    client = chromadb.PersistentClient(tmp_path)
    client.create_collection("crag", embedding_function=None).add(ids=["x"], embeddings=[[1.0]])
    client.close()
    with pytest.raises(DocumentIndexError, match="another version of crag"):
        DocumentIndex(tmp_path, embeddings).open()


def test_names_of_embedding_models(make_embeddings: Callable[..., Any]) -> None:
    assert embedding_name(make_embeddings("a")) == "a"
    assert embedding_name(DeterministicFakeEmbedding(size=3)) == "DeterministicFakeEmbedding"
