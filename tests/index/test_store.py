"""Opening an index: what is there, what is not, and what is something else."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.errors import InternalError
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.documents.sources import SourceText
from crag.documents.splitting import split
from crag.errors import (
    DocumentIndexError,
    EmbeddingMismatchError,
    EmptyIndexError,
    IndexNotFoundError,
    SettingsError,
)
from crag.index import DocumentIndex, IndexRetriever, index_paths
from crag.index.backends import open_backend
from crag.index.backends.checkpoint import sole_writer
from crag.index.backends.chroma_client import index_errors
from crag.index.contract import checked_way, filter_of
from crag.index.retriever import IndexStore
from crag.index.store import embedding_name
from crag.index.writer import _batches


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


@pytest.mark.parametrize("damage", [write_garbage, write_nothing, truncate, write_other_database])
def test_a_damaged_index_is_told(filled: DocumentIndex, damage: Callable[[Path], None]) -> None:
    filled.close()
    damage(Path(filled.location))
    with pytest.raises(DocumentIndexError, match=r"(?i)delete the folder and index again"):
        filled.open()


def test_a_database_that_the_system_does_not_read_is_told(tmp_path: Path, embeddings: Any) -> None:
    (tmp_path / "chroma.sqlite3").symlink_to("/proc/self/mem")  # Reading its start is an error.
    with pytest.raises(DocumentIndexError, match="cannot be read: Input/output error"):
        DocumentIndex(tmp_path, embeddings).open()


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("database or disk is full", "Is the disk full?"),
        ("no such table: collections", "Is it an index? If it is damaged: delete the folder"),
    ],
)
def test_what_chroma_says_is_told_with_advice(said: str, advice: str) -> None:
    with pytest.raises(DocumentIndexError) as caught, index_errors("/data/index"):
        raise InternalError(said)
    assert str(caught.value).startswith(f"index /data/index: {said}. {advice}")


def test_a_folder_that_may_not_be_written_is_told_in_our_words() -> None:
    said = "error returned from database: (code: 8) attempt to write a readonly database"
    with pytest.raises(DocumentIndexError) as caught, index_errors("/data/index"):
        raise InternalError(said)
    told = "index /data/index: nothing may be written there, but Chroma must, also to read. "
    assert str(caught.value) == f"{told}Allow it, or use a copy of the folder"


def test_damaged_words_are_made_again_or_told(filled: DocumentIndex, folder: Path) -> None:
    filled.close()
    file = Path(filled.location) / "words.sqlite3"
    file.write_bytes(b"garbage" * 100)
    assert filled.search("text", 1, by="words")
    filled.close()
    told = r"words\.sqlite3 cannot be read or written: file is not a database.*delete it"
    with pytest.raises(DocumentIndexError, match=told):
        index_paths([folder], filled)
    file.unlink()
    assert index_paths([folder], filled).unchanged == 20


def test_words_while_another_run_writes_are_those_of_before(filled: DocumentIndex) -> None:
    """Words that were left behind may only be completed by who writes; others search in them."""
    filled.close()
    file = Path(filled.location) / "words.sqlite3"
    with closing(sqlite3.connect(file)) as words:
        words.execute("UPDATE chunks SET id = 'gone' WHERE number = 1")
        words.execute("UPDATE state SET mark = mark || '0'")
        words.commit()
    with sole_writer(Path(filled.location)):
        assert len(filled.search("text", 30, by="words")) == 19
        filled.close()
        file.unlink()
        assert len(filled.search("text", 30, by="words")) == 20
    assert not file.exists()


def test_an_index_is_filled_from_files_alone(embeddings: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"crag\.index\.index_paths"):
        IndexStore.from_texts(["A text."], embeddings)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (
            lambda: filter_of(since="last week"),
            "setting 'since' cannot be 'last week': write a day as 2026-01-31",
        ),
        (
            lambda: filter_of(until="2026-13-01"),
            "setting 'until' cannot be '2026-13-01': write a day as",
        ),
        (
            lambda: checked_way("taste"),
            "'find_by' cannot be 'taste': allowed are both, meaning, words",
        ),
    ],
)
def test_what_chunks_are_found_by_is_checked(use: Callable[[], object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        use()


def test_vectors_that_were_made_elsewhere_are_not_made_again(
    filled: DocumentIndex, embeddings: Any
) -> None:
    made = [split(SourceText(source=name, title="", text=name, unit="line"), "/") for name in "ab"]
    with filled.writing() as writer:
        asked = len(embeddings.embedded)
        writer.write(made, vectors=np.eye(8, dtype=np.float32)[:2])
        assert len(embeddings.embedded) == asked
    with closing(open_backend(filled.location)) as opened:
        (nearest,) = opened.get(opened.by_vector(np.eye(8)[1].tolist(), 1))
        assert nearest.page_content == "b"


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


@pytest.mark.parametrize(
    ("documents", "batches"),
    [([3, 3], [3, 3]), ([2, 3], [5]), ([2, 7], [2, 5, 2]), ([1, 1, 1], [3])],
)
def test_only_a_document_that_is_too_long_is_cut(documents: list[int], batches: list[int]) -> None:
    made = [[Document(str(number))] * number for number in documents]
    assert [len(batch) for batch in _batches(made, 5)] == batches
