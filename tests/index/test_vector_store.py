"""What is particular to vector stores of LangChain; see test_backends.py for the rest."""

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from crag.errors import CragError, DocumentIndexError
from crag.index import DocumentIndex
from crag.index.backends.sqlite_file import FILE
from crag.index.store import SCHEMA, Stamp, unit
from tests.index.test_backends import near, opened
from tests.repeating import times

STAMP = Stamp(schema=SCHEMA, embeddings="fake", dimension=4)
AXES = np.eye(4, dtype=np.float32)


def in_memory(embeddings: Embeddings) -> InMemoryVectorStore:
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["d41d8cd98f00b204"])  # As an older version named a text.
    return store


class Forgetful(InMemoryVectorStore):
    """A store in memory whose writes fail once it holds more than there is room for."""

    room = 2

    def add_documents(self, documents: list[Document], *given: Any, **options: Any) -> list[str]:
        added = super().add_documents(documents, *given, **options)
        if len(self.store) > self.room:
            raise OSError("no room: the disk is full")
        return added


def forgetful(embeddings: Embeddings) -> InMemoryVectorStore:
    return Forgetful(embeddings)


def at(name: str, folder: Path) -> str:
    return f"tests.index.test_vector_store:{name}://{folder}"


def chunks(*names: str) -> list[Document]:
    return [Document(f"All about {name}.", id=name, metadata={"source": "/s"}) for name in names]


def filled(location: str) -> DocumentIndex:
    index = opened(location)
    with index.writing():
        index.create(STAMP)
        index.write(chunks("alpha", "beta"), AXES[:2])
    return index


def test_a_chroma_that_was_being_written_is_made_anew(tmp_path: Path) -> None:
    with closing(filled(str(tmp_path))) as index:
        with closing(sqlite3.connect(tmp_path / FILE)) as database:
            database.execute("INSERT INTO waiting VALUES (7)")
            database.commit()
        for file in (tmp_path / "chroma").rglob("*.bin"):
            file.write_bytes(b"torn")
        index.most_held = 0  # type: ignore[attr-defined]
        assert near(index, AXES[1], 1) == ["beta"], "the torn files are not opened"
        with index.writing():
            pass
        assert not waiting_in(tmp_path)
        assert near(index, AXES[1], 1) == ["beta"]


def waiting_in(folder: Path) -> int:
    with closing(sqlite3.connect(folder / FILE)) as database:
        return int(database.execute("SELECT count(*) FROM waiting").fetchone()[0])


def test_a_write_that_the_store_refuses_is_told_and_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(filled(at("forgetful", tmp_path))) as index:
        monkeypatch.setattr(Forgetful, "room", 0)
        with (
            pytest.raises(DocumentIndexError, match=r"store failed: no room.*is whole"),
            index.writing(),
        ):
            index.write(chunks("gamma"), AXES[2:3])
        assert waiting_in(tmp_path) == 1
        assert near(index, AXES[2], 1) == ["gamma"]
        monkeypatch.setattr(Forgetful, "room", 3)
        with index.writing():
            pass
        assert not waiting_in(tmp_path)


def near_equal(number: int) -> np.ndarray[Any, Any]:
    """Return vectors of which a third are nearly one, a third a few, and the others far apart."""
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(12, 24))
    few = centres[draw.integers(12, size=number // 3)] + draw.normal(size=(number // 3, 24)) / 20
    one = centres[0] + draw.normal(size=(number // 3, 24)) / 100
    return np.concatenate([few, one, draw.normal(size=(number - 2 * (number // 3), 24))])


@pytest.mark.parametrize("store", ["", at("in_memory", Path())[:-1]])
def test_the_nearest_are_found_exactly_and_by_the_graph(tmp_path: Path, store: str) -> None:
    """A test of recall at every opening, with vectors that are nearly equal."""
    vectors = near_equal(times(1500, 9000)).astype(np.float32)
    texts = chunks(*map(str, range(len(vectors))))
    location = f"{store}{tmp_path}"
    with closing(opened(location)) as index, index.writing():
        index.create(STAMP._replace(dimension=24))
        for start in range(0, len(vectors), 500):
            part = slice(start, start + 500)
            index.write(texts[part], vectors[part])
        index.write(removed=["3", "1000"])
    there = np.array([number for number in range(len(vectors)) if number not in {3, 1000}])
    asked = unit(np.concatenate([vectors[::97], near_equal(60)[::3]]).astype(np.float32))
    cosines = asked @ unit(vectors).T
    for most_held in (0, 2**30):
        found = []
        for _ in range(2):
            with closing(opened(location)) as index:
                index.most_held = most_held  # type: ignore[attr-defined]
                found.append([near(index, one, 10) for one in asked])
        assert found[0] == found[1]
        recalled = [
            sum(row[int(name)] >= np.sort(row[there])[-10] - 1e-6 for name in names)
            for row, names in zip(cosines, found[0], strict=True)
        ]
        assert sum(recalled) >= 0.99 * 10 * len(asked)


def test_a_read_only_index_is_read() -> None:
    program = (
        "import os, sys\n"
        "from tests.index.test_backends import opened; index = opened(sys.argv[1])\n"
        "import numpy; os.setuid(65534) if not os.getuid() else None\n"
        "print(index.count(), len(index.by_vector([0, 1, 0, 0], 5)))"
    )
    with tempfile.TemporaryDirectory() as folder:
        filled(folder).close()
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", program, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        Path(folder).chmod(0o755)
    assert done.stdout == "2 2\n", done.stderr


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (at("missing", Path("/kept")), "missing'.*it cannot be imported"),
        (at("in_memory", Path())[:-1], "name a folder for the index"),
        ("redis://user:secret@host", "index redis://…: allowed are FOLDER, postgresql://"),
    ],
)
def test_a_function_that_cannot_be_used_is_told(location: str, told: str) -> None:
    with pytest.raises(CragError, match=told):
        opened(location)
