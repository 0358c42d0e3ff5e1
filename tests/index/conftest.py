"""What the tests of retrieval share: vectors without a model, folders, indexes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from crag.index import DocumentIndex
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
def postgres_server() -> Iterator[str]:
    """Run PostgreSQL with pgvector and return the URL of a database without tables."""
    with postgres() as url:
        yield url
