"""What is particular to an index on a Chroma server; see test_backends.py for the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DocumentIndexError
from crag.retrieval import DocumentIndex, index_paths


def test_a_server_that_does_not_answer(
    folder: Path, embeddings: Any, free_port: Callable[[], int]
) -> None:
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
