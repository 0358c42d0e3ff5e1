"""What the tests share: documents, hits and parts."""

import os
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.parts import Hit, Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever, FakeSearcher

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


_LONGEST = ("tests/test_packaging.py", "tests/notebooks/", "tests/server/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no core waits at the end for one of them."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: gzip writes the time into its header.

    Workers that collect in two different seconds would have tests of different names.
    """
    return argname if isinstance(val, bytes) else None


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


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not depend on, and never use, the keys of whoever runs them."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "TAVILY_", "SEARXNG_", "CRAG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
