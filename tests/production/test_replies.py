"""What the API writes as JSON: whatever a graph holds, and text that is no Unicode."""

from collections import UserDict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langgraph.types import Send

from crag.server.replies import decoded, encoded
from crag.server.streaming import checkpoint_of, command


@dataclass
class Place:
    street: str
    number: int


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (Document("Ada.", metadata={"source": "a.md"}),
         {"id": None, "metadata": {"source": "a.md"}, "page_content": "Ada.", "type": "Document"}),
        (ValueError("no"), {"error": "ValueError", "message": "no"}),
        ({"a"}, ["a"]),
        (frozenset({1}), [1]),
        ((1, "b"), [1, "b"]),
        (UserDict(a=1), {"a": 1}),
        (Place("Mill Lane", 7), {"street": "Mill Lane", "number": 7}),
        (Place("half \ud800", 7), {"street": "half \ud800", "number": 7}),
        (Path("/a"), "/a"),
        (Place, str(Place)),
        (np.float32(0.5), 0.5),
        ({1: datetime(2026, 1, 1, tzinfo=UTC)}, {"1": "2026-01-01T00:00:00+00:00"}),
        ("half \ud800 a pair", "half \ud800 a pair"),
        ({"documents": [Document("\udcff")]}, {"documents": [
            {"id": None, "metadata": {}, "page_content": "\udcff", "type": "Document"}]}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_a_graph_holds_is_json(value: Any, found: Any) -> None:
    assert decoded(encoded({"value": value})) == {"value": found}


def test_a_command_of_a_client() -> None:
    assert command({"resume": True}).resume is True
    assert command({"goto": "ask"}).goto == ["ask"]
    sent = {"node": "ask", "input": {"question": "Why?"}}
    assert command({"goto": sent}).goto == [Send("ask", {"question": "Why?"})]
    assert command({"goto": ["ask", sent]}).goto == ["ask", Send("ask", {"question": "Why?"})]


@pytest.mark.parametrize("config", [None, {}, {"configurable": {"thread_id": "1"}}])
def test_what_names_no_checkpoint_has_an_address_without_an_id(config: Any) -> None:
    thread = (config or {}).get("configurable", {})
    assert checkpoint_of(config) == {"checkpoint_ns": "", "checkpoint_id": None} | thread
