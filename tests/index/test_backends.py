"""The contract of every back end, with real servers."""

import random
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.index import DocumentIndex, IndexRetriever, index_paths, open_index
from crag.index.backends import STORES
from crag.index.ranking import terms_of
from crag.index.store import SCHEMA, Stamp, text_key, unit
from tests.conftest import CountingEmbeddings
from tests.repeating import times

STAMP = Stamp(schema=SCHEMA, embeddings="fake", dimension=4)
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "stores.py"
DOWN = "/data/handbook/leave.md"


def drop_tables(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS crag_index, crag_chunks, crag_texts")


IN_MEMORY = "tests.index.test_vector_store:in_memory"


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the location of an index that does not exist, in each store."""
    if "postgresql" in request.param:
        url = request.getfixturevalue("postgres_server")
        yield url
        drop_tables(url)
    else:
        place = request.param.replace("./", "").replace("MODULE:FUNCTION", IN_MEMORY)
        yield place.replace("FOLDER", str(tmp_path / "index"))


@pytest.fixture
def backend(location: str) -> Iterator[DocumentIndex]:
    with closing(opened(location)) as index:
        yield index


def chunk(name: str, text: str, **metadata: Any) -> Document:
    known = {"source": f"/data/{name}.md", "title": ""}
    return Document(text, id=name, metadata=known | metadata)


CHUNKS = [
    chunk("alpha", "Install it with pip install tool.", title="Set up"),
    chunk("beta", "The error httpx.ProxyError means that the proxy refused.", section="Errors"),
    chunk("gamma", "Pass --no-color, or set NO_COLOR; exit code E_404."),
    chunk("delta", "Leave is granted by the supervisor.", source=DOWN),
    chunk("epsilon", "Über naïve Füße: 東京の天気.", source="/data/a_b/x%y.jsonl#1"),
]
VECTORS = np.array([*np.eye(4), [-1, -1, -1, -1]], dtype=np.float32)


@pytest.fixture
def filled(backend: DocumentIndex) -> DocumentIndex:
    with backend.writing():
        backend.create(STAMP)
        backend.write(CHUNKS, VECTORS)
    return backend


def opened(location: str) -> DocumentIndex:
    return open_index(location, CountingEmbeddings())


def near(index: DocumentIndex, vector: Any, k: int, folder: str = "") -> list[str]:
    """Return the ids of the nearest chunks, one for each text."""
    numbers = index.by_vector(list(vector), k, folder)
    return [str(one.id) for one in found(index, numbers, folder)]


def found(index: DocumentIndex, numbers: list[int], folder: str) -> list[Document]:
    chunks = [index.document([number], folder) for number in numbers]
    return [chunk for chunk in chunks if chunk]


def said(index: DocumentIndex, question: str, k: int, folder: str = "") -> list[str]:
    """Return the ids of the chunks that have words of the question."""
    numbers = index.by_words(terms_of(question), k, folder)
    return [str(one.id) for one in found(index, numbers, folder)]


def stored(index: DocumentIndex) -> dict[str, dict[str, Any]]:
    return {str(one.id): one.metadata for one in index.stored()}


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


def test_what_was_added_is_stored(filled: DocumentIndex) -> None:
    assert filled.stamp() == STAMP
    assert filled.count() == 5
    assert stored(filled) == {str(one.id): one.metadata for one in CHUNKS}
    assert list(filled.stored("/data/handbook")) == [CHUNKS[3]]


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


def test_words(filled: DocumentIndex) -> None:
    """In one index, because a new one for each question takes most of the time."""
    found = {asked: sorted(said(filled, asked, 10)) for asked in BY_WORDS}
    assert found == BY_WORDS


FILTERED = {
    "/data/handbook": ["delta"],
    "/data/handbook/leave.md": ["delta"],
    "/data/hand": [],
    "handbook": ["delta"],
    "handbook/leave.md": ["delta"],
    "HANDBOOK": [],
    "a_b": ["epsilon"],
    "a_b/x%y.jsonl": ["epsilon"],
    "a-b": [],
    "/data/": ["alpha", "beta", "delta", "epsilon", "gamma"],
}


def test_filters_hold_for_words_and_vectors(filled: DocumentIndex) -> None:
    everything = "pip proxy color supervisor naive"
    assert {one: sorted(near(filled, [1, 1, 1, 1], 5, one)) for one in FILTERED} == FILTERED
    assert {one: sorted(said(filled, everything, 5, one)) for one in FILTERED} == FILTERED


def test_a_second_writer_is_told_to_wait(backend: DocumentIndex, location: str) -> None:
    other, told = opened(location), "another run is writing to it"
    with backend.writing(), pytest.raises(DocumentIndexError, match=told):
        other.writing().__enter__()
    with other.writing():
        assert other.stamp() is None


def test_two_readers_and_threads(filled: DocumentIndex, location: str) -> None:
    with closing(opened(location)) as other, ThreadPoolExecutor(8) as pool:
        tasks = [
            pool.submit(said if number % 3 else near, index, asked, 2)
            for number, index in enumerate([filled, other] * 12)
            for asked in (["proxy" if number % 3 else [0, 1, 0, 0]])
        ]
        assert {task.result()[0] for task in tasks} == {"beta"}


def test_a_folder_of_files(location: str, folder: Path, embeddings: Any) -> None:
    (folder / "a.md").write_text("# Engines\n\nThey compute.")
    (folder / "b.txt").write_text("Other.")
    with open_index(location, embeddings) as index:
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


def test_it_does_what_a_model_in_memory_does(backend: DocumentIndex) -> None:
    """Chunks of a few texts come, go and change; what is found is what a comparison finds."""
    generator = random.Random(7)  # noqa: S311 - any will do
    texts = [f"item{number % 9} " * (1 + number % 3) for number in range(25)]
    vectors = {text: direction(number) for number, text in enumerate(texts)}
    model: dict[str, Document] = {}
    with backend.writing():
        backend.create(STAMP)
    for step in range(times(12, 60)):
        new = [
            chunk(str(generator.randrange(40)), generator.choice(texts), step=step)
            for _ in range(generator.randrange(8))
        ]
        new = list({one.id: one for one in new}.values())
        known = sorted(model.keys() - {one.id for one in new})
        gone = generator.sample(known, k=min(len(known), generator.randrange(4)))
        rows = [vectors[one.page_content] for one in new]
        with backend.writing():
            backend.write(new, rows, gone)
        model |= {str(one.id): one for one in new}
        for identifier in gone:
            del model[identifier]
        agrees(backend, model, vectors, direction(1000 + step))


def agrees(index: DocumentIndex, model: dict[str, Document], vectors: Any, asked: Any) -> None:
    assert stored(index) == {identifier: one.metadata for identifier, one in model.items()}
    for folder in ("", "/data/7.md"):
        passing = [one for one in model.values() if folder in one.metadata["source"]]
        known = {text_key(one): one.page_content for one in passing}
        cosines = {key: float(unit(vectors[text]) @ unit(asked)) for key, text in known.items()}
        chunks = found(index, index.by_vector(asked, 10, folder), folder)
        keys = [text_key(one) for one in chunks]
        assert keys == sorted(cosines, key=lambda key: -cosines[key])[:10]
        for one in chunks:
            places = {place["source"] for place in one.metadata.get("also", [])}
            same = [chunk for chunk in model.values() if text_key(chunk) == text_key(one)]
            assert places | {one.metadata["source"]} == {chunk.metadata["source"] for chunk in same}
            assert one.id in {chunk.id for chunk in passing}
        numbers = index.by_words([("item3",), ("item5",)], 50, folder)
        has = {text for text in known.values() if "item3" in text or "item5" in text}
        passages = index.passages(numbers, list(asked))
        assert {one.text for one in passages} == has
    total, counts = index.holders([("item3",), ("item5", "item5"), ("zebra",)])
    all_texts = {one.page_content for one in model.values()}
    twice = sum("item5 item5" in text for text in all_texts)
    assert (total, counts) == (len(all_texts), [sum("item3" in t for t in all_texts), twice, 0])


WRITER = """
import sys
import numpy as np
from langchain_core.documents import Document
from tests.index.test_backends import opened

index = opened(sys.argv[1])
number = index.count()
while True:
    with index.writing():
        numbers = range(number, number + 20)
        known = {"source": "/s"}
        chunks = [Document(f"item{n} of all", id=str(n), metadata=known) for n in numbers]
        vectors = [np.random.default_rng(n).normal(size=4) for n in numbers]
        index.write(chunks, vectors)
        index.write(removed=[str(number)])
        index.write(chunks[:1], vectors[:1])
        number += 20
        print(number, flush=True)
"""


def survives_kills(location: str, kills: int, seed: int) -> int:
    """Kill a writer at random moments; check that nothing it reported is lost; return the size."""
    generator = random.Random(seed)  # noqa: S311 - any moments will do
    with closing(opened(location)) as index, index.writing():
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
        with closing(opened(location)) as index:
            with index.writing():
                known = set(map(int, stored(index)))
                lost = set(range(reported)) - known
                assert not lost, sorted(lost)
                torn = set(range(len(known) + 1)) - known
                index.write(*rows(sorted(torn)))  # What the next run of `crag index` would add.
            assert_whole(index)
            reported = index.count()
    return reported


def rows(numbers: list[int]) -> tuple[list[Document], Any]:
    chunks = [Document(f"item{n} of all", id=str(n), metadata={"source": "/s"}) for n in numbers]
    return chunks, np.stack([direction(n) for n in numbers]).astype("float32")


def direction(number: int) -> Any:
    """Return the vector of a chunk, as `WRITER` draws it: no two of thousands are close."""
    return np.random.default_rng(number).normal(size=4)


def assert_whole(index: DocumentIndex) -> None:
    """Check that each chunk that is stored is found."""
    known = set(map(int, stored(index)))
    assert len(known) == index.count()
    for held in (2**30, 0):
        index.most_held = held  # type: ignore[attr-defined]
        for number in [*sorted(known)[:: max(1, len(known) // 40)], max(known)]:
            assert said(index, f"item{number}", 5) == [str(number)]
            assert str(number) in near(index, direction(number).tolist(), 3)


@pytest.mark.slow
def test_killed_writers_lose_nothing(location: str) -> None:
    kills = times(1, 20)
    assert survives_kills(location, kills, seed=0) >= 20 * kills


FILLER = """
import resource, signal, sys
from tests.index.test_backends import opened, rows
from crag.errors import DocumentIndexError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
index = opened(sys.argv[1])
try:
    with index.writing():
        for start in range(100, 10000, 100):
            index.write(*rows(list(range(start, start + 100))))
except DocumentIndexError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [200_000, 460_000])
def test_a_full_disk_is_told_and_leaves_an_index_that_goes_on(tmp_path: Path, room: int) -> None:
    location = str(tmp_path / "index")
    with closing(opened(location)) as index:
        with index.writing():
            index.create(STAMP)
            index.write(*rows(list(range(100))))
        command = [sys.executable, "-c", FILLER, location, str(room)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Is the disk full? The index itself is whole" in done.stdout, done.stderr
        assert_whole(index)
        size = index.count()
        with index.writing():
            index.write(*rows(list(range(size, size + 100))))
        assert index.count() == size + 100
        assert_whole(index)


def test_a_server_that_does_not_answer_is_told_once_and_without_secrets(
    folder: Path, embeddings: Any
) -> None:
    (folder / "a.txt").write_text("x")
    index = open_index("postgresql://me:secret@127.0.0.1:1/name", embeddings)
    assert index.location == "postgresql://127.0.0.1:1/name"
    with pytest.raises(DocumentIndexError, match="and is this its") as caught:
        index_paths([folder], index)
    assert str(caught.value).count("and is this its") == 1
    assert "secret" not in str(caught.value)
