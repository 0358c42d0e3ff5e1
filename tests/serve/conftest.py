"""Servers that the tests of this folder share."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.documents import Document

from crag.graph import build_crag, build_rag
from crag.parts import Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever
from tests.serve.serving import KEYS, USERS, serving

ADA = Document(
    "Ada Lovelace wrote the first published program.",
    metadata={"title": "Ada Lovelace", "source": "/notes/ada.md", "root": "/notes",
              "position": "line 3"},
)  # fmt: skip


def graphs(**replaced: Any) -> dict[str, Any]:
    """Return graphs over fakes that answer at once."""
    parts = Parts(**{
        "retriever": FakeRetriever(documents=[ADA]),
        "evaluator": FakeEvaluator(0.9),
        "model": FakeChatModel(replies=["Ada did [1]."] * 1000),
    } | replaced)  # fmt: skip
    return {"crag": build_crag(parts), "rag": build_rag(parts)}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server without a token."""
    with serving(graphs(), tmp_path_factory.mktemp("served")) as address:
        yield address


@pytest.fixture(scope="module")
def users_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of two users, of whom only Ada edits documents."""
    folder = tmp_path_factory.mktemp("users")
    with serving(graphs(), folder, keys=USERS, editors=frozenset({"ada"})) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as one:
        yield one


@pytest.fixture
def ada(users_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=users_url, headers={"x-api-key": KEYS["ada"]}, timeout=60) as one:
        yield one


@pytest.fixture
def bob(users_url: str) -> Iterator[httpx.Client]:
    authorization = {"Authorization": f"Bearer {KEYS['bob']}"}
    with httpx.Client(base_url=users_url, headers=authorization, timeout=60) as one:
        yield one
