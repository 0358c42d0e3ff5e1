"""An index on a Chroma server."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DocumentIndexError, IndexNotFoundError
from crag.retrieval import DocumentIndex, IndexRetriever, index_paths


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=1).close()  # noqa: S310 - our own server
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        else:
            return
    pytest.fail("the Chroma server did not start")


@pytest.mark.slow
def test_an_index_on_a_server(server: str, folder: Path, embeddings: Any) -> None:
    (folder / "a.md").write_text("# Engines\n\nThey compute.")
    (folder / "b.txt").write_text("Other.")
    with DocumentIndex(server, embeddings) as index:
        with pytest.raises(IndexNotFoundError):
            index.open()
        assert index_paths([folder], index).added == 2
        (found,) = IndexRetriever(index, k=1).invoke("b // Other.")
        assert (found.page_content, found.metadata["position"]) == ("Other.", "line 1")
        (folder / "b.txt").write_text("Changed.")
        report = index_paths([folder], index)
        assert (report.changed, report.unchanged) == (1, 1)
        (folder / "b.txt").unlink()
        assert index_paths([folder], index).removed == 1
        assert index.count() == 1
        assert index_paths([folder], index, remove=True).removed == 1


def test_a_server_that_does_not_answer(folder: Path, embeddings: Any) -> None:
    (folder / "a.txt").write_text("x")
    index = DocumentIndex(f"http://127.0.0.1:{free_port()}", embeddings)
    for use in (index.open, lambda: index_paths([folder], index)):
        with pytest.raises(DocumentIndexError, match="Is the Chroma server running"):
            use()


@pytest.mark.parametrize(
    "url", ["http://", "http://user:secret@host:1", "http://host:1/path", "https://host?x=1"]
)
def test_other_urls_are_refused_without_repeating_secrets(url: str, embeddings: Any) -> None:
    with pytest.raises(DocumentIndexError, match="http\\(s\\)://HOST:PORT") as caught:
        DocumentIndex(url, embeddings).open()
    assert "secret" not in str(caught.value)
