"""Killed runs: the index opens, holds whole documents, and the next run completes it."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langchain_core.documents import Document

from crag.documents.sources import SourceText
from crag.documents.splitting import split
from crag.errors import DocumentIndexError
from crag.index import DocumentIndex, index_paths
from crag.index.backends import chroma, open_backend
from crag.index.backends.checkpoint import _backed_up, files_locked, save, unsaved
from crag.index.contract import Stamp

FAKE = """
import sys
from langchain_core.embeddings import DeterministicFakeEmbedding
from crag.index import DocumentIndex, index_paths

class Fake(DeterministicFakeEmbedding):
    name: str = "fake"
index = DocumentIndex(sys.argv[1], Fake(size=8))
"""
INDEX = FAKE + (
    "index_paths([sys.argv[2]], index, progress=lambda *call: print(call[0], flush=True))\n"
)
WRITES = (
    FAKE
    + """
from crag.index.backends import chroma
from crag.documents.sources import SourceText
from crag.documents.splitting import split
if sys.argv[2:] == ["from memory"]:
    chroma._LEAST_SAVED, chroma._SAVED_PER_ROOT = 60, 0
with index.writing() as writer:
    number = len(writer.entries())
    while True:
        sources = range(number, number + 50)
        texts = (SourceText(source=str(n), title="", text=str(n), unit="line") for n in sources)
        writer.write([split(text, "/") for text in texts])
        if not sys.argv[2:]:
            writer.index.checkpoint(1)
        number += 50
        print(number, flush=True)
"""
)


def start(code: str, *arguments: str | Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def everything(index: DocumentIndex) -> tuple[dict[str, Any], list[Any]]:
    """Return all chunks by id, and the content of the inverted index."""
    with closing(open_backend(index.location)) as opened:
        chunks = opened.get([identifier for identifier, _ in opened.stored()])
        opened.by_words("makes up for what is missing", 1)
    query = "SELECT id, modified, heading, text FROM chunks JOIN words ON number = words.rowid"
    with closing(sqlite3.connect(Path(index.location) / "words.sqlite3")) as database:
        rows = sorted(database.execute(query))
    return {str(chunk.id): chunk for chunk in chunks}, rows


def chunks(numbers: range) -> list[list[Document]]:
    return [
        split(SourceText(source=str(number), title="", text=str(number), unit="line"), "/")
        for number in numbers
    ]


def assert_all_found(index: DocumentIndex, numbers: range) -> None:
    """Check that each text is found by its own vector and by its own word."""
    for by in ("meaning", "words"):
        found = [index.search(str(n), 1, by=by)[0].page_content for n in numbers]
        assert found == [str(number) for number in numbers]


def test_a_killed_run_leaves_whole_documents_and_is_completed(
    folder: Path, tmp_path: Path, index: DocumentIndex, embeddings: Any
) -> None:
    text = " ".join(f"Sentence {number}." for number in range(120))
    records = [{"id": n, "text": f"{n} {'' if n % 3 else text}"} for n in range(1000)]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    process = start(INDEX, Path(index.location), folder)
    assert process.stdout is not None
    while int(process.stdout.readline()) < 650:
        pass
    kill(process)
    part, rows = everything(index)
    assert [row[0] for row in rows] == sorted(part)
    assert 700 < len(part) < 1650
    chunks_there = [chunk.metadata for chunk in part.values()]
    written = Counter(metadata["source"] for metadata in chunks_there)
    assert all(written[metadata["source"]] == metadata["chunks"] for metadata in chunks_there)
    report = index_paths([folder], index)
    assert report.unchanged > 0
    assert report.added + report.unchanged == 1000
    other = DocumentIndex(tmp_path / "other", embeddings)
    index_paths([folder], other)
    assert everything(index) == everything(other)
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["from memory"]])
def test_runs_killed_while_saving(index: DocumentIndex, how: list[str]) -> None:
    """Chroma's own way of saving leaves files that crash the next process that opens them."""
    generator = random.Random(0)  # noqa: S311 - any moments will do
    for _ in range(2):
        process = start(WRITES, index.location, *how)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(generator.uniform(0.1, 1.0))
        kill(process)
        size = index.count()
        assert size % 50 == 0
        assert_all_found(index, range(size))
        index.close()


def test_small_changes_are_not_saved_and_many_are(index: DocumentIndex) -> None:
    place = Path(index.location)
    with index.writing() as writer:
        writer.write(chunks(range(100)))
    assert unsaved(place) == 100
    with index.writing() as writer:
        writer.write(chunks(range(100, 1200)))
    assert unsaved(place) == 0
    assert_all_found(index, range(0, 1200, 50))
    assert not (place / "checkpoint").exists()


def test_a_run_that_writes_much_has_its_graph_saved_from_memory(
    index: DocumentIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded_again(_: Path) -> None:
        raise AssertionError

    monkeypatch.setattr(chroma, "_LEAST_SAVED", 100)
    monkeypatch.setattr(chroma, "_SAVED_PER_ROOT", 0)
    monkeypatch.setattr(chroma, "save", loaded_again)
    place, most = Path(index.location), []
    with index.writing() as writer:
        for first in range(0, 600, 40):
            writer.write(chunks(range(first, first + 40)))
            most.append(unsaved(place))
        writer.index.remove([str(one.id) for one in chunks(range(40))[0]])
    assert max(most) <= 140  # A new graph is saved after the write that fills it.
    assert most.count(0) >= 3
    assert not (place / "checkpoint").exists()
    assert_all_found(index, range(40, 600, 20))


def test_torn_files_are_replaced_by_their_copy(index: DocumentIndex) -> None:
    place = Path(index.location)
    with index.writing() as writer:
        writer.write(chunks(range(100)))
        writer.index.checkpoint(1)
        writer.write(chunks(range(100, 150)))
    with files_locked(place):
        _backed_up(place).__enter__()  # The process dies before the end of the block.
    for file in place.glob("*-*/*"):
        file.write_bytes(b"\xff" * 100)
    assert_all_found(index, range(150))
    assert not (place / "checkpoint").exists()


def test_a_copy_that_is_older_than_the_files_is_dropped(index: DocumentIndex) -> None:
    place = Path(index.location)
    with index.writing() as writer:
        writer.write(chunks(range(100)))
    with files_locked(place):
        _backed_up(place).__enter__()
    (place / "checkpoint").rename(place / "kept")
    save(place)
    (place / "kept").rename(place / "checkpoint")  # As if killed right after saving.
    assert_all_found(index, range(100))
    assert not (place / "checkpoint").exists()


def test_half_a_copy_is_none(index: DocumentIndex) -> None:
    place = Path(index.location)
    with index.writing() as writer:
        writer.write(chunks(range(3)))
    (place / "checkpoint.unfinished" / "half").mkdir(parents=True)
    save(place)
    assert_all_found(index, range(3))
    assert sorted(path.name for path in place.iterdir() if "check" in path.name) == []


def test_an_index_without_chunks_can_be_saved(index: DocumentIndex) -> None:
    place = Path(index.location)
    chromadb.PersistentClient(place).close()
    save(place)
    assert not index.exists()
    with closing(open_backend(index.location)) as opened, opened.writing():
        opened.create(Stamp(schema=1, embeddings="fake", dimension=8))
        opened.checkpoint(0)
        assert opened.count() == 0


@pytest.mark.parametrize("lost", ["files", "folder"])
def test_vectors_that_are_gone_are_told(index: DocumentIndex, lost: str) -> None:
    """Chroma alone would go on, and find nothing but the chunks that were written last."""
    with index.writing() as writer:
        writer.write(chunks(range(3)))
        writer.index.checkpoint(1)
    assert_all_found(index, range(3))
    index.close()
    (saved,) = Path(index.location).glob("*-*/")
    shutil.rmtree(saved)
    if lost == "files":
        saved.mkdir()
    told = f"the files of its vectors, {saved.name}, are missing. Delete the folder and index again"
    for use in (index.open, lambda: index.search("1", 1)):
        with pytest.raises(DocumentIndexError, match=told):
            use()


def test_a_damaged_database_is_told_before_its_files_are_repaired(index: DocumentIndex) -> None:
    place = Path(index.location)
    with index.writing() as writer:
        writer.write(chunks(range(3)))
    with files_locked(place):
        _backed_up(place).__enter__()
    start = (place / "chroma.sqlite3").read_bytes()[:16]
    (place / "chroma.sqlite3").write_bytes(start + b"garbage" * 1000)
    with pytest.raises(DocumentIndexError, match=r"chroma\.sqlite3 cannot be read.*index again"):
        index.open()
    assert (place / "checkpoint").is_dir()


def test_a_folder_that_allows_no_lock_is_still_read(index: DocumentIndex) -> None:
    with index.writing() as writer:
        writer.write(chunks(range(3)))
    for name in ("files.lock", "crag.lock"):
        (Path(index.location) / name).unlink()
        (Path(index.location) / name).mkdir()
    assert_all_found(index, range(3))
    with pytest.raises(DocumentIndexError, match="cannot be written: Is a directory"):
        index.writing().__enter__()
