"""What the tests of retrieval share: vectors without a model, folders, indexes."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from crag.index import DocumentIndex
from tests.page.serving import free_port
from tests.postgres import postgres


class CountingEmbeddings(Embeddings):
    """Vectors that depend on the text alone; remembers what it was asked to embed."""

    def __init__(self, name: str = "fake", size: int = 8) -> None:
        self.name = name
        self.embedded: list[str] = []
        self._fake = DeterministicFakeEmbedding(size=size)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return self._fake.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._fake.embed_query(text)


@pytest.fixture
def make_embeddings() -> Callable[..., CountingEmbeddings]:
    return CountingEmbeddings


@pytest.fixture
def embeddings() -> CountingEmbeddings:
    return CountingEmbeddings()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder for documents."""
    path = tmp_path / "documents"
    path.mkdir()
    return path


@pytest.fixture
def index(tmp_path: Path, embeddings: CountingEmbeddings) -> Iterator[DocumentIndex]:
    """Return an index in a folder that does not exist yet."""
    with DocumentIndex(tmp_path / "index", embeddings) as opened:
        yield opened


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Chroma server and return its URL."""
    port = free_port()
    program = Path(sys.executable).with_name("chroma")
    place = tmp_path_factory.mktemp("server")
    command = [program, "run", "--path", place, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/api/v2/heartbeat")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=1).close()  # noqa: S310 - our own server
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        else:
            return
    pytest.fail("the Chroma server did not start")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Run PostgreSQL with pgvector and return the URL of a database without tables."""
    with postgres() as url:
        yield url
