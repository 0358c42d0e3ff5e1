"""What is particular to vector stores of LangChain; see test_backends.py for the rest."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from crag.errors import DocumentIndexError
from crag.index.backends import open_backend
from crag.index.backends.langchain_store import MadeVectors
from crag.index.contract import Filter, Index, Stamp
from tests.loopback import serving

STAMP = Stamp(schema=1, embeddings="fake", dimension=4)
AXES = np.eye(4, dtype=np.float32)


def in_memory(embeddings: Embeddings) -> InMemoryVectorStore:
    return InMemoryVectorStore(embeddings)


class Forgetful(InMemoryVectorStore):
    """A store whose writes fail once it holds two entries."""

    def add_documents(self, documents: list[Document], *given: Any, **options: Any) -> list[str]:
        added = super().add_documents(documents, *given, **options)
        if len(self.store) > 2:
            raise OSError("no room")
        return added


class Deaf(InMemoryVectorStore):
    """A store that removes nothing, and says so."""

    def delete(self, *_given: Any, **_options: Any) -> Any:
        return False


def no_store(_embeddings: Embeddings) -> str:
    return "nothing"


def at(name: str, folder: Path) -> str:
    return f"tests.index.test_langchain_store:{name}://{folder}"


def chunks(*names: str) -> list[Document]:
    return [Document(f"All about {name}.", id=name, metadata={"source": "/s"}) for name in names]


def filled(location: str) -> Index:
    index = open_backend(location)
    with index.writing():
        index.create(STAMP)
        index.add(chunks("alpha", "beta"), AXES[:2])
    return index


@contextmanager
def on_disk(embeddings: Embeddings) -> Iterator[Any]:
    """Open a store that keeps what it holds, at the place that a variable names."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    with closing(QdrantClient(path=os.environ["ON_DISK"])) as client:
        if not client.collection_exists("crag"):
            shape = VectorParams(size=4, distance=Distance.COSINE)
            client.create_collection("crag", vectors_config=shape)
        yield QdrantVectorStore(client, "crag", embeddings, validate_collection_config=False)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Return an index in a store that keeps what it holds."""
    monkeypatch.setenv("ON_DISK", str(tmp_path / "points"))
    with closing(filled(at("on_disk", tmp_path / "index"))) as index:
        index.close()
        yield index


@contextmanager
def points(index: Index) -> Iterator[Any]:
    """Open what the store of an index keeps."""
    from qdrant_client import QdrantClient

    index.close()
    with closing(QdrantClient(path=os.environ["ON_DISK"])) as client:
        yield client


def size(index: Index) -> int:
    with points(index) as client:
        return client.count("crag").count


KILLED = """
import os, signal, sys
import numpy as np
from langchain_core.documents import Document
from langchain_qdrant import QdrantVectorStore
from crag.index.backends import open_backend

location, method = sys.argv[1:]
there = getattr(QdrantVectorStore, method)


def die(*given, **options):
    there(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)


setattr(QdrantVectorStore, method, die)
index = open_backend(location)
with index.writing():
    chunks = [Document("Another.", id=name, metadata={"source": "/s"}) for name in ("beta", "new")]
    index.add(chunks, np.eye(4, dtype=np.float32)[2:])
"""


@pytest.mark.parametrize(("method", "left"), [("delete", 1), ("add_texts", 3)])
def test_a_run_killed_between_store_and_manifest(
    kept: Index, tmp_path: Path, method: str, left: int
) -> None:
    """Until the next run the manifest counts; that run puts right what the store has."""
    command = [sys.executable, "-c", KILLED, at("on_disk", tmp_path / "index"), method]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert {name for name, _ in kept.stored()} == {"alpha", "beta"}
    assert kept.by_words("beta", 5) == ["beta"]
    assert "new" not in kept.by_vector([0, 0, 0, 1], 5)
    assert size(kept) == left
    with kept.writing():
        pass
    assert size(kept) == 2
    assert kept.by_vector([0, 1, 0, 0], 1) == ["beta"]
    with kept.writing():
        kept.add(chunks("new"), AXES[3:])
    assert size(kept) == 3
    assert kept.by_vector([0, 0, 0, 1], 1) == ["new"]


def test_a_store_that_lost_everything_is_filled_again(kept: Index) -> None:
    with points(kept) as client:
        client.delete_collection("crag")
    assert kept.by_vector([0, 1, 0, 0], 1) == ["beta"]
    assert size(kept) == 2


def test_what_others_put_there_is_left_out(kept: Index) -> None:
    from langchain_qdrant import QdrantVectorStore

    with points(kept) as client:
        store = QdrantVectorStore(client, "crag", DeterministicFakeEmbedding(size=4))
        store.add_texts([f"Theirs {number}." for number in range(9)])
        (found,) = store.similarity_search_by_vector([0, 1, 0, 0], k=1)
        assert (found.page_content, found.metadata["source"]) == ("All about beta.", "/s")
    assert set(kept.by_vector([-1, -1, -1, -1], 2)) == {"alpha", "beta"}


def test_a_narrow_filter_finds_what_is_far_away(tmp_path: Path) -> None:
    near = [
        Document("Near.", id=f"near{number}", metadata={"source": f"/near/{number}"})
        for number in range(400)
    ]
    for store in ("qdrant", "faiss"):  # The one is told the ids, the other asked for more.
        with closing(filled(f"{store}://{tmp_path / store}")) as index:
            with index.writing():
                index.add(near, np.tile(AXES[3], (400, 1)))
            assert index.by_vector([0, 1, 0, 1], 1, Filter(folder="/s")) == ["beta"]


def test_another_process_sees_each_write_in_memory_too(tmp_path: Path) -> None:
    with closing(filled(at("in_memory", tmp_path))) as index:
        assert index.by_vector([0, 0, 1, 0], 1) != ["gamma"]
        program = (
            "import sys, numpy; from langchain_core.documents import Document;"
            "from crag.index.backends import open_backend; index = open_backend(sys.argv[1])\n"
            "with index.writing():\n"
            " index.add([Document('Three', id='gamma')], numpy.eye(4, dtype='float32')[2:3])"
        )
        subprocess.run([sys.executable, "-c", program, at("in_memory", tmp_path)], check=True)
        assert index.by_vector([0, 0, 1, 0], 1) == ["gamma"]
        assert index.by_words("three", 1) == ["gamma"]


def test_a_write_that_the_store_refuses_changes_nothing(tmp_path: Path) -> None:
    with closing(filled(at("Forgetful", tmp_path))) as index:
        with index.writing(), pytest.raises(DocumentIndexError, match="vector store failed: no ro"):
            index.add(chunks("gamma"), AXES[2:3])
        assert {name for name, _ in index.stored()} == {"alpha", "beta"}
        assert "gamma" not in index.by_vector([0, 0, 1, 0], 3)


def test_a_write_that_the_manifest_refuses_changes_nothing(tmp_path: Path) -> None:
    with closing(filled(f"faiss://{tmp_path}")) as index:
        with closing(sqlite3.connect(tmp_path / "chunks.sqlite3")) as other:
            other.execute(
                "CREATE TRIGGER full BEFORE INSERT ON chunks WHEN new.id = 'gamma' "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        told = "its chunks cannot be read or written: no room"
        with index.writing(), pytest.raises(DocumentIndexError, match=told):
            index.add(chunks("delta", "gamma"), AXES[2:])
        assert {name for name, _ in index.stored()} == {"alpha", "beta"}
        assert set(index.by_vector([0, 0, 1, 0], 3)) == {"alpha", "beta"}
        assert index.by_words("delta", 1) == []


def test_a_damaged_manifest_is_told(tmp_path: Path) -> None:
    (tmp_path / "chunks.sqlite3").write_bytes(b"garbage" * 100)
    told = "its chunks cannot be read or written: file is not a database"
    with pytest.raises(DocumentIndexError, match=told):
        open_backend(f"faiss://{tmp_path}").stamp()


def test_a_removal_that_the_store_refuses_is_told(tmp_path: Path) -> None:
    with closing(filled(at("Deaf", tmp_path))) as index, index.writing():
        with pytest.raises(DocumentIndexError, match="it did not remove"):
            index.remove(["beta"])
        assert index.count() == 2


def test_vectors_are_given_for_the_texts_alone() -> None:
    made = MadeVectors(2)
    assert made.embed_documents(["a probe"]) == [made.embed_query("")] == [[1.0, 0.0]]
    with pytest.raises(ValueError, match="other texts"), made.of(["a"], AXES[:1, :2]):
        made.embed_documents(["b"])
    with pytest.raises(ValueError, match="it took 1 of 2 texts"), made.of("ab", AXES[:2, :2]):
        made.embed_documents(["a"])


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (at("missing", Path("/kept")), "test_langchain_store:missing cannot be imported"),
        ("nowhere.at.all:store:///kept", "cannot be imported: No module named 'nowhere'"),
        (at("in_memory", Path())[:-1], "name a folder for words and manifest"),
    ],
)
def test_a_function_that_cannot_be_used_is_told(location: str, told: str) -> None:
    with pytest.raises(DocumentIndexError, match=told):
        open_backend(location)


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    told = "str is no VectorStore"
    with pytest.raises(DocumentIndexError, match=told):
        filled(at("no_store", tmp_path))


def test_a_collection_is_made_on_a_qdrant_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with serving({"result": {"exists": False}, "status": "ok", "time": 0.0}) as server:
        server.statuses = [200, 202]
        server.failure = {"result": {"operation_id": 0, "status": "completed"}}
        with pytest.raises(DocumentIndexError):
            filled(server.url.replace("http", "qdrant"))
    made = server.requests[1]
    assert made["path"] == "/collections/crag"
    assert made["vectors"] == {"size": 4, "distance": "Cosine"}
