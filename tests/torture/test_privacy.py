"""Nothing phones home, and keys stay where they are."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from crag.graph import build_crag, build_self_rag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeReader,
    FakeReflection,
    FakeRetriever,
    FakeSearcher,
)
from tests.commands import crag
from tests.conftest import DOCUMENTS, HITS
from tests.repeating import times

QUESTION = "Who designed the lighthouse of Cape Merrow?"
KEYS = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "TAVILY_API_KEY": "tvly-planted-0123456789abcdef",
    "LANGSMITH_API_KEY": "lsv2_planted_0123456789abcdef",
    "HF_TOKEN": "hf_planted0123456789abcdef",
    "CRAG_SERVE_TOKEN": "planted-token-of-the-server",
    "SOME_PASSWORD": "a planted pass phrase",
    "MY_SECRET": "planted+secret/with=signs",
}
CALLS: list[str] = []
"""Connections and look-ups of this process while `watching`; hooks cannot be removed."""
_WATCHED = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
_watch = {"on": False}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch["on"] and event in _WATCHED:
        CALLS.append(f"{event} {arguments[1:] if event.startswith('socket.conn') else arguments}")


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """Record every connection that Python code of this process makes."""
    if "hooked" not in _watch:
        sys.addaudithook(_hook)
        _watch["hooked"] = True
    CALLS.clear()
    _watch["on"] = True
    try:
        yield CALLS
    finally:
        _watch["on"] = False


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    text = "The lighthouse of Cape Merrow was designed by Edith Halloran."
    (folder / "light.md").write_text(f"# Lights\n\n{text}\n", "utf-8")
    return folder


def test_index_and_ask_connect_to_nothing(
    documents: Path, tmp_path: Path, calls: list[str]
) -> None:
    index = tmp_path / "index"
    assert crag("index", documents, "--index", index).returncode == 0
    for method in ("crag", "self-crag", "rag", "self-rag")[: times(2, 4)]:
        done = crag("ask", QUESTION, "--index", index, "--method", method, "--set", "web_results=1")
        assert done.returncode == 0, done.stderr
    assert [call for call in calls if not _is_local(call)] == []


def _is_local(call: str) -> bool:
    return any(name in call for name in ("127.0.0.1", "'localhost'", "'::1'", "AF_UNIX", "'/"))


class Leaking(FakeReader):
    """Tells every key in the reason why it cannot read."""

    def read(self, urls: Any, limits: Any) -> Any:
        pages = super().read(urls, limits)
        return [page._replace(detail=" ".join(KEYS.values())) for page in pages]


@pytest.mark.parametrize("build", [build_crag, build_self_rag])
def test_keys_that_parts_tell_appear_nowhere(
    build: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    error = ConnectionError(f"refused with {' and '.join(KEYS.values())}")
    parts = Parts(
        retriever=FakeRetriever(documents=list(DOCUMENTS), error=error),
        evaluator=FakeEvaluator(0.0, error=error),
        model=FakeChatModel(error=error),
        searcher=FakeSearcher(HITS),
        reader=Leaking({}),
        reflection=FakeReflection({}, fails_after=0),
    )
    keeper = InMemorySaver()
    graph = build(parts, checkpointer=keeper)
    config = {"configurable": {"thread_id": "1"}}
    with caplog.at_level(logging.DEBUG):
        streamed = list(
            graph.stream(
                {"question": QUESTION},
                config,
                context=Settings(),
                stream_mode=["updates", "values"],
            )
        )
    seen = {
        "state": json.dumps(streamed[-1][1], default=str),
        "stream": str(streamed),
        "logs": caplog.text,
        "checkpoints": f"{keeper.storage} {keeper.writes} {keeper.blobs}",
    }
    assert "ConnectionError" in seen["state"]
    for place, text in seen.items():
        assert [name for name, key in KEYS.items() if key in text] == [], place


def test_keys_of_the_environment_are_not_shown(documents: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("".join(f"{name}={key}\n" for name, key in KEYS.items()))
    nowhere = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "CRAG_MODEL": "local"} | KEYS
    index = tmp_path / "index"
    assert crag("index", documents, "--index", index).returncode == 0
    for arguments in (
        ("ask", QUESTION, "--json"),
        ("ask", QUESTION, "--trace"),
        ("doctor",),
        ("doctor", "--json"),
    ):
        done = crag(*arguments, "--index", index, folder=tmp_path, environment=nowhere)
        shown = done.stdout + done.stderr
        assert [name for name, key in KEYS.items() if key in shown] == [], arguments
