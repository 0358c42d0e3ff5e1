"""JSON as clients of LangGraph's API read it, also of text that is no Unicode."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

import pytest
from langchain_core.documents import Document

from crag.server.encoding import decoded, encoded


@dataclass
class Strip:
    text: str
    score: float


@pytest.mark.parametrize("text", ["The kettle is red.", "A half: \ud800"])
def test_what_a_state_may_hold_is_an_object_a_list_or_text(text: str) -> None:
    """Text that is no Unicode takes another way, by which the rest must come to the same."""
    sent = {
        "documents": [Document(text, id="1", metadata={"source": "kettle.txt"})],
        "error": ValueError("no kettle"),
        "seen": {"kettle"},
        "never": frozenset(),
        "place": (3, 4),
        "settings": MappingProxyType({"upper": 0.6}),
        "strip": Strip(text, 0.5),
        "file": PurePosixPath("/data/kettle.txt"),
    }
    assert decoded(encoded(sent)) == {
        "documents": [
            {
                "id": "1", "metadata": {"source": "kettle.txt"}, "page_content": text,
                "type": "Document",
            }
        ],
        "error": {"error": "ValueError", "message": "no kettle"},
        "seen": ["kettle"],
        "never": [],
        "place": [3, 4],
        "settings": {"upper": 0.6},
        "strip": {"text": text, "score": 0.5},
        "file": "/data/kettle.txt",
    }  # fmt: skip
