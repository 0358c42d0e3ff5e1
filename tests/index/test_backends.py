"""The contract of every back end, with real servers."""

import json
import random
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from langchain_core.documents import Document

from crag.errors import DocumentIndexError, IndexNotFoundError
from crag.index import DocumentIndex, IndexRetriever, index_paths
from crag.index.backends import STORES, open_backend, store_of
from crag.index.contract import Filter, Index, Stamp
from tests.repeating import times

STAMP = Stamp(schema=1, embeddings="fake", dimension=4)
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "stores.py"
DOWN = "/data/handbook/leave.md"


def drop_collection(url: str) -> None:
    import chromadb

    from crag.index.backends.chroma_client import close_client, open_client

    client = open_client(url)
    try:
        client.delete_collection("crag")
    except chromadb.errors.NotFoundError:
        pass
    finally:
        close_client(client)


def drop_tables(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS crag_index, crag_chunks")


IN_MEMORY = "tests.index.test_langchain_store:in_memory"
SERVERS = {
    "http://HOST:8000": ("chroma_server", drop_collection),
    "postgresql://HOST/DATABASE": ("postgres_server", drop_tables),
}


@pytest.fixture(params=[one.address for one in STORES if one.address != "qdrant://HOST:6333"])
def location(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return the location of an index that does not exist, in each store but a Qdrant server."""
    if request.param in SERVERS:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        server, drop = SERVERS[request.param]
        url = request.getfixturevalue(server)
        yield url
        drop(url)
    else:
        place = request.param.replace("./", "").replace("MODULE:FUNCTION", IN_MEMORY)
        yield place.replace("FOLDER", str(tmp_path / "index"))


@pytest.fixture
def backend(location: str) -> Iterator[Index]:
    with closing(open_backend(location)) as index:
        yield index


def chunk(name: str, text: str, **metadata: Any) -> Document:
    known = {"source": f"/data/{name}.md", "title": "", "modified": "2026-01-15", "kind": "prose"}
    return Document(text, id=name, metadata=known | metadata)


CHUNKS = [
    chunk("alpha", "Install it with pip install tool.", title="Set up"),
    chunk("beta", "The error httpx.ProxyError means that the proxy refused.", section="Errors"),
    chunk("gamma", "Pass --no-color, or set NO_COLOR; exit code E_404.", kind="list"),
    chunk("delta", "Leave is granted by the supervisor.", source=DOWN, modified="2025-03-01"),
    chunk("epsilon", "Über naïve Füße: 東京の天気.", source="/data/a_b/x%y.jsonl#1"),
]
VECTORS = np.array([*np.eye(4), [-1, -1, -1, -1]], dtype=np.float32)


@pytest.fixture
def filled(backend: Index) -> Index:
    with backend.writing():
        backend.create(STAMP)
        backend.add(CHUNKS, VECTORS)
    return backend


def stored(index: Index) -> dict[str, dict[str, Any]]:
    return {identifier: dict(metadata) for identifier, metadata in index.stored()}


def test_the_example_program_answers_from_it(
    location: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["stores.py", location])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "2 added, 0 unchanged",
        ("correct: “The lighthouse of Cape Merrow was designed by Edith Halloran.” [1] merrow.md"),
        "incorrect: I could not find this in the documents. ",
    ]


def test_nothing_is_there_at_first(backend: Index, location: str, embeddings: Any) -> None:
    assert backend.stamp() is None
    with DocumentIndex(location, embeddings) as index, pytest.raises(IndexNotFoundError) as told:
        index.open()
    assert store_of(str(told.value).split()[-1]) == store_of(location)  # The command to build it.


def test_what_was_added_is_stored(filled: Index) -> None:
    assert filled.stamp() == STAMP
    assert filled.count() == 5
    assert stored(filled) == {str(one.id): one.metadata for one in CHUNKS}
    assert filled.get(["gamma", "unknown", "alpha"]) == [CHUNKS[2], CHUNKS[0]]
    assert filled.get([]) == []


def test_it_opens_again(filled: Index, location: str) -> None:
    filled.close()
    assert filled.count() == 5
    with closing(open_backend(location)) as other:
        assert other.by_words("proxy", 1) == ["beta"]
        assert other.by_vector([0, 0, 1, 0], 1) == ["gamma"]


def test_the_nearest_come_first(filled: Index) -> None:
    assert filled.by_vector([0.1, 1, 0.5, 0], 3) == ["beta", "gamma", "alpha"]
    assert filled.by_vector([1, 0, 0, 0], 1) == ["alpha"]
    assert len(filled.by_vector([1, 0, 0, 0], 1000)) == 5


BY_WORDS = {
    "What does httpx.ProxyError mean?": ["beta"],
    "proxy error": ["beta"],
    "--no-color": ["gamma"],
    "what is E_404": ["gamma"],
    "installing tools": ["alpha"],
    "setting up": ["alpha", "gamma"],
    "who grants leaves?": ["delta"],
    "uber FUSSE": ["epsilon"],
    "天気": ["epsilon"],
    "zebra": [],
    "?!": [],
    '"\\ & | ! NEAR( * :': [],
}


def test_words(filled: Index) -> None:
    """In one index, because a new one for each question takes most of the time."""
    found = {asked: sorted(map(str, filled.by_words(asked, 10))) for asked in BY_WORDS}
    assert found == BY_WORDS


def test_a_rare_word_counts_more_than_frequent_ones(backend: Index) -> None:
    texts = ["the server starts slowly"] * 30 + ["the zebra sleeps"]
    chunks = [chunk(str(number), text) for number, text in enumerate(texts)]
    with backend.writing():
        backend.create(STAMP)
        backend.add(chunks, np.ones((31, 4), dtype=np.float32))
    assert backend.by_words("does the zebra start the server?", 1) == ["30"]


def test_a_change_replaces_text_words_and_vector(filled: Index) -> None:
    with filled.writing():
        filled.add([chunk("alpha", "Uses conda.")], np.array([[-1, 0, 0, 0]], dtype=np.float32))
    assert filled.count() == 5
    assert filled.by_words("pip", 5) == []
    assert filled.by_words("conda", 5) == ["alpha"]
    assert filled.by_vector([-1, 0, 0, 0], 1) == ["alpha"]


def test_what_was_removed_is_not_found(filled: Index) -> None:
    with filled.writing():
        filled.remove(["beta", "unknown"])
    assert filled.count() == 4
    assert filled.by_words("proxy", 5) == []
    assert "beta" not in filled.by_vector([0, 1, 0, 0], 5)


def test_amended_metadata_are_stored_and_filtered(filled: Index) -> None:
    with filled.writing():
        filled.amend([("alpha", {"position": "line 7", "modified": "2026-02-01"})])
    assert filled.get(["alpha"])[0].metadata == CHUNKS[0].metadata | {
        "position": "line 7",
        "modified": "2026-02-01",
    }
    late = Filter(since="2026-02-01")
    assert filled.by_words("pip", 5, late) == ["alpha"]
    assert filled.by_vector([0, 1, 0, 0], 5, late) == ["alpha"]


FILTERED = {
    Filter(folder="/data/handbook"): ["delta"],
    Filter(folder="/data/handbook/leave.md"): ["delta"],
    Filter(folder="/data/hand"): [],
    Filter(folder="handbook"): ["delta"],
    Filter(folder="handbook/leave.md"): ["delta"],
    Filter(folder="HANDBOOK"): [],
    Filter(folder="a_b"): ["epsilon"],
    Filter(folder="a_b/x%y.jsonl"): ["epsilon"],
    Filter(folder="a-b"): [],
    Filter(folder="/data/"): ["alpha", "beta", "delta", "epsilon", "gamma"],
    Filter(kind="list"): ["gamma"],
    Filter(kind="table"): [],
    Filter(until="2025-12-31"): ["delta"],
    Filter(since="2026-01-15", kind="list"): ["gamma"],
    Filter(since="2026-01-16"): [],
    Filter(folder="data", kind="prose", until="2025-03-01"): ["delta"],
}


def test_filters_hold_for_words_and_vectors(filled: Index) -> None:
    everything = "pip proxy color supervisor naive"
    near = {one: sorted(map(str, filled.by_vector([1, 1, 1, 1], 5, one))) for one in FILTERED}
    said = {one: sorted(map(str, filled.by_words(everything, 5, one))) for one in FILTERED}
    assert near == said == FILTERED


def test_two_readers_and_threads(filled: Index, location: str) -> None:
    with closing(open_backend(location)) as other, ThreadPoolExecutor(8) as pool:
        tasks = [
            pool.submit(index.by_words if number % 3 else index.by_vector, asked, 2)
            for number, index in enumerate([filled, other] * 12)
            for asked in (["proxy" if number % 3 else [0, 1, 0, 0]])
        ]
        assert {task.result()[0] for task in tasks} == {"beta"}


def test_a_folder_of_files(location: str, folder: Path, embeddings: Any) -> None:
    (folder / "a.md").write_text("# Engines\n\nThey compute.")
    (folder / "b.txt").write_text("Other.")
    with DocumentIndex(location, embeddings) as index:
        assert index_paths([folder], index).added == 2
        retriever = IndexRetriever(index, k=1)
        (found,) = retriever.invoke("b // Other.")
        assert (found.page_content, found.metadata["position"]) == ("Other.", "line 1")
        assert retriever.invoke("engine", find_by="words")[0].metadata["title"] == "Engines"
        assert retriever.invoke("engine", folder=str(folder / "b.txt")) == [found]
        (folder / "b.txt").write_text("Changed.")
        report = index_paths([folder], index)
        assert (report.changed, report.unchanged) == (1, 1)
        assert retriever.invoke("other", find_by="words") == []
        (folder / "b.txt").unlink()
        assert index_paths([folder], index).removed == 1
        assert index.count() == 1
        assert index_paths([folder], index, remove=True).removed == 1


def test_threads_ask_while_another_one_writes(location: str, folder: Path, embeddings: Any) -> None:
    (folder / "a.md").write_text("# Engines\n\nThey compute.")
    with (
        DocumentIndex(location, embeddings) as index,
        DocumentIndex(location, embeddings) as asked,
        ThreadPoolExecutor(3) as pool,
    ):
        index_paths([folder], index)
        written = threading.Event()

        def ask() -> int:
            answered = 0
            while not written.is_set() or not answered:
                assert asked.search("engines")
                assert asked.files()
                assert asked.stored()
                answered += 1
            return answered

        answers = [pool.submit(ask) for _ in range(3)]
        try:
            for number in range(8):
                (folder / f"{number}.txt").write_text(f"Text {number}.")
                index_paths([folder], index)
        finally:
            written.set()
        assert all(answer.result() for answer in answers)


WRITER = """
import sys
import numpy as np
from langchain_core.documents import Document
from crag.index.backends import open_backend

index = open_backend(sys.argv[1])
with index.writing():
    number = index.count()
    while True:
        numbers = range(number, number + 20)
        index.add(
            [Document(f"item{n} of all", id=str(n), metadata={"source": "/s"}) for n in numbers],
            np.stack([np.random.default_rng(n).normal(size=4) for n in numbers]).astype("float32"),
        )
        index.remove([str(number)])
        index.add(
            [Document(f"item{number} of all", id=str(number), metadata={"source": "/s"})],
            np.random.default_rng(number).normal(size=(1, 4)).astype("float32"),
        )
        number += 20
        print(number, flush=True)
"""


def survives_kills(location: str, kills: int, seed: int) -> int:
    """Kill a writer at random moments; check that nothing it reported is lost; return the size."""
    generator = random.Random(seed)  # noqa: S311 - any moments will do
    with closing(open_backend(location)) as index, index.writing():
        index.create(STAMP)
    reported = 0
    for _ in range(kills):
        command = [sys.executable, "-c", WRITER, location]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(generator.uniform(0, 0.5))
        process.kill()
        rest, _ = process.communicate()
        reported = max([reported + 20, *map(int, rest.split())])
        with closing(open_backend(location)) as index:
            with index.writing():
                known = {int(identifier) for identifier, _ in index.stored()}
                lost = set(range(reported)) - known
                assert not lost, sorted(lost)
                torn = set(range(len(known) + 1)) - known
                index.add(*rows(sorted(torn)))  # What the next run of `crag index` would add.
            assert_whole(index)
            reported = index.count()
    return reported


def rows(numbers: list[int]) -> tuple[list[Document], Any]:
    chunks = [Document(f"item{n} of all", id=str(n), metadata={"source": "/s"}) for n in numbers]
    return chunks, np.stack([direction(n) for n in numbers]).astype("float32")


def direction(number: int) -> Any:
    """Return the vector of a chunk, as `WRITER` draws it: no two of thousands are close."""
    return np.random.default_rng(number).normal(size=4)


def assert_whole(index: Index) -> None:
    """Check that each chunk that is stored is found."""
    known = {int(identifier) for identifier, _ in index.stored()}
    assert len(known) == index.count()
    for number in [*sorted(known)[:: max(1, len(known) // 40)], max(known)]:
        assert index.by_words(f"item{number}", 5) == [str(number)]
        assert str(number) in index.by_vector(direction(number).tolist(), 3)


@pytest.mark.slow
def test_killed_writers_lose_nothing(location: str) -> None:
    kills = times(1, 20, 50)
    assert survives_kills(location, kills, seed=0) >= 20 * kills


def test_a_removal_that_was_cut_off_is_done_before_the_next_write(
    chroma_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma's server logs it, and without a write of ours shows what it removes until then."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        with closing(open_backend(chroma_server)) as index, index.writing():
            index.create(STAMP)
            index.add(*rows(list(range(60))))
        collection, delays = collection_id(chroma_server), np.geomspace(0.0005, 0.05, 59)
        late = 0
        for number, seconds in enumerate(delays):
            cut_off_removal(chroma_server, collection, str(number), seconds)
            with closing(open_backend(chroma_server)) as index:
                shown = {identifier for identifier, _ in index.stored()}
                with index.writing():
                    known = {identifier for identifier, _ in index.stored()}
                    index.add(*rows([59]))
                    assert {identifier for identifier, _ in index.stored()} == known
                late += shown != known
            if late == 3:
                break
        assert late
    finally:
        drop_collection(chroma_server)


def collection_id(url: str) -> str:
    from crag.index.backends.chroma_client import close_client, find_collection, open_client

    client = open_client(url)
    try:
        collection = find_collection(client, url)
        assert collection is not None
        return str(collection.id)
    finally:
        close_client(client)


def cut_off_removal(url: str, collection: str, identifier: str, seconds: float) -> None:
    """Ask the server to remove a chunk, and leave before it replies, as a killed client does."""
    address = urlsplit(url)
    path = "/api/v2/tenants/default_tenant/databases/default_database/collections"
    body = json.dumps({"ids": [identifier]})
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(
            f"POST {path}/{collection}/delete HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        time.sleep(seconds)
    time.sleep(0.02)


def test_unknown_schemes_are_refused_without_repeating_them() -> None:
    with pytest.raises(DocumentIndexError, match="postgresql://") as caught:
        open_backend("redis://user:secret@host")
    assert "secret" not in str(caught.value)


@pytest.fixture
def postgres_index(postgres_server: str) -> Iterator[tuple[Index, Any]]:
    """Yield an index in PostgreSQL, and a connection to its database."""
    import psycopg

    with (
        closing(open_backend(postgres_server)) as index,
        psycopg.connect(postgres_server, autocommit=True) as connection,
    ):
        yield index, connection
    drop_tables(postgres_server)


def test_words_of_an_older_crag_are_made_again(postgres_index: tuple[Index, Any]) -> None:
    index, connection = postgres_index
    with index.writing():
        index.create(STAMP)
        index.add(CHUNKS, VECTORS)
    connection.execute("UPDATE crag_index SET words = 0")
    connection.execute("UPDATE crag_chunks SET words = ''")
    assert index.by_words("proxy", 1) == []
    assert index.stamp() == STAMP
    assert index.by_words("proxy", 1) == ["beta"]
    assert connection.execute("SELECT words FROM crag_index").fetchone() > (0,)


def test_vectors_too_long_for_a_graph_are_compared(postgres_index: tuple[Index, Any]) -> None:
    index, connection = postgres_index
    with index.writing():
        index.create(STAMP._replace(dimension=2001))
        index.add(CHUNKS, np.eye(5, 2001, dtype=np.float32))
    assert index.by_vector([0, 1] + [0] * 1999, 1) == ["beta"]
    graphs = "SELECT count(*) FROM pg_indexes WHERE indexname = 'crag_vectors'"
    assert connection.execute(graphs).fetchone() == (0,)


def test_a_second_writer_of_postgresql_is_told_to_wait(
    postgres_index: tuple[Index, Any], postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag.index.backends.postgres._PATIENCE", 0.1)
    other = open_backend(postgres_server)
    told = "another run is writing to it"
    with postgres_index[0].writing(), pytest.raises(DocumentIndexError, match=told):
        other.writing().__enter__()
    with other.writing():
        assert other.stamp() is None


def test_what_postgresql_lacks_is_told(
    postgres_index: tuple[Index, Any], postgres_server: str
) -> None:
    index, connection = postgres_index
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    known = "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector' RETURNING extversion"
    query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    (version,) = connection.execute(query).fetchone()
    connection.execute(known, ["0.7.4"])
    try:
        with pytest.raises(
            DocumentIndexError, match=r"has pgvector 0\.7\.4; 0\.8 or newer is needed"
        ):
            index.create(STAMP)
    finally:
        connection.execute(known, [version])
    connection.execute("DROP EXTENSION vector; CREATE ROLE guest LOGIN")
    guest = open_backend(postgres_server.replace("//postgres:", "//guest:"))
    told = 'permission denied to create extension "vector".*administrator.*CREATE EXTENSION vector'
    with closing(guest), pytest.raises(DocumentIndexError, match=told):
        guest.create(STAMP)


def test_an_index_that_is_deleted_while_it_is_in_use(
    chroma_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with closing(open_backend(chroma_server)) as index:
        with index.writing():
            index.create(STAMP)
            index.add(CHUNKS, VECTORS)
        assert index.by_words("proxy", 1) == ["beta"]
        drop_collection(chroma_server)
        with pytest.raises(DocumentIndexError, match="it was deleted while it was in use"):
            index.by_words("proxy", 1)


@pytest.mark.parametrize("address", [one.address for one in STORES if "HOST" in one.address])
def test_a_server_that_does_not_answer_is_told_once_and_without_secrets(
    address: str, folder: Path, embeddings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder.parent))
    (folder / "a.txt").write_text("x")
    scheme, host = address.split("://")
    user = "" if scheme == "http" else "me:secret@"  # Chroma takes none; see below.
    host = host.replace("HOST", "127.0.0.1").replace("8000", "1").replace("6333", "1")
    host = host.replace("127.0.0.1/", "127.0.0.1:1/")
    index = DocumentIndex(f"{scheme}://{user}{host}", embeddings)
    assert index.location.startswith(f"{scheme}://127.0.0.1:1")
    with pytest.raises(DocumentIndexError, match="and is this its") as caught:
        index_paths([folder], index)
    assert str(caught.value).count("and is this its") == 1
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://", "http://user:secret@host:1", "http://host:1/path", "https://host?x=1"]
)
def test_other_urls_of_chroma_are_refused_without_repeating_secrets(url: str) -> None:
    with (
        pytest.raises(DocumentIndexError, match="http\\(s\\)://HOST:PORT") as caught,
        closing(open_backend(url)) as index,
    ):
        index.stamp()
    assert "secret" not in str(caught.value)
