"""What the tests share: documents, hits and parts."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

# Before any library is imported: workers with a thread for each core wait for each other, spinning.
os.environ |= {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
# Clients of HTTP read all authorities there are when they are made, 20 ms each; no test meets one.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("fixtures") / "authority.pem")

from typing import Any

import pytest
from hypothesis import settings
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from crag.index import DocumentIndex, open_index
from crag.parts import Hit, Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever, FakeSearcher
from tests.postgres import postgres

DOCUMENTS = [
    Document(
        "Ada Lovelace wrote the first published program. It was for the Analytical Engine.",
        metadata={"title": "Ada Lovelace", "source": "ada.md", "position": "line 3"},
    ),
    Document(
        "Charles Babbage designed the Analytical Engine. He never finished building it.",
        metadata={"title": "Charles Babbage", "source": "babbage.md", "position": "line 9"},
    ),
]
HITS = [
    Hit("Programmers", "https://example.org/p", "Ada Lovelace is called the first programmer."),
    Hit("Ada", "https://en.wikipedia.org/wiki/Ada", "Ada Lovelace published her notes in 1843."),
]

CORPORA = ("click", "cooking", "devguide", "handbook", "prometheus", "starlette")
"""Documentation of others in Markdown and reStructuredText, in docs/corpus of `data`."""


# Without deadlines: the first example may load a model. The quick one draws the same examples in
# every run.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=300, deadline=None)
settings.load_profile("quick")  # `make test-nightly` takes the other.

_ONE_SERVER = "tests/serve/"
_TORCH = (
    "tests/papers/evaluator/",
    "tests/papers/reader/",
    "tests/papers/self_rag/",
    "tests/papers/studies/",
    "tests/evaluators/",
    "tests/models/",
    "tests/reflection/backends/",
    "tests/papers/metrics/",
    "tests/papers/bench/test_reproducing.py",
    "tests/papers/cli/",
)
_TOGETHER = ((_ONE_SERVER,), _TORCH)
"""Tests that share what takes seconds: a server, or the import of torch and transformers."""
_LONGEST = (
    _ONE_SERVER,
    *_TORCH,
    "tests/notebooks/",
    "tests/test_documents.py",
    "tests/papers/bench/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data", metavar="FOLDER", type=Path,
        help="where the development data lie, which tests marked `data` read",
    )  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no core waits at the end for one of them."""

    def place(item: pytest.Item) -> int:
        starts = (place for place, start in enumerate(_LONGEST) if item.nodeid.startswith(start))
        return next(starts, len(_LONGEST))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, and those of `_TOGETHER` in one, too."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = next((starts for starts in _TOGETHER if nodeid.startswith(starts)), None)
            return group[0] if group else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def data(pytestconfig: pytest.Config) -> Path:
    """The folder of the development data. Without it a test fails: a skipped one says nothing."""
    folder: Path | None = pytestconfig.getoption("--data")
    if folder is None or not folder.is_dir():
        said = "--data names none" if folder is None else f"{folder.resolve()} is no folder"
        problem = f"reads development data, but {said}: make test-data DATA=FOLDER"
        pytest.fail(problem, pytrace=False)
    return folder.resolve()


@pytest.fixture
def documents() -> list[Document]:
    return list(DOCUMENTS)


@pytest.fixture
def hits() -> list[Hit]:
    return list(HITS)


@pytest.fixture
def make_parts() -> Any:
    """Build parts of fakes; `score` decides the action (upper 0.5, lower -0.5)."""

    def make(score: Any = 0.9, **replaced: Any) -> Parts:
        parts: dict[str, Any] = {
            "retriever": FakeRetriever(documents=list(DOCUMENTS)),
            "evaluator": FakeEvaluator(score),
            "model": FakeChatModel(replies=["Ada Lovelace did [1]."]),
            "searcher": FakeSearcher(HITS),
        }
        return Parts(**parts | replaced)

    return make


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
    with open_index(tmp_path / "index", embeddings) as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Run PostgreSQL with pgvector and return the URL of a database without tables."""
    with postgres() as url:
        yield url


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not depend on, and never use, the keys of whoever runs them."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "TAVILY_", "SEARXNG_", "CRAG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
