"""The text that a tool answers with: short, whatever the state holds."""

from collections.abc import Callable
from typing import Any

import pytest

Told = Callable[[dict[str, Any], str], str]


@pytest.fixture
def told() -> Told:
    """The function; its module loads here, as each worker collects this file."""
    from crag.page import mcp_tools

    return mcp_tools.told


def state(answer: str, citations: int, outcome: str = "answered") -> dict[str, Any]:
    source = {
        "id": "a",
        "title": "A title of some length",
        "url": "/d/b/a.md",
        "position": "line 3",
    }
    return {
        "answer": answer,
        "outcome": outcome,
        "citations": [{"number": at + 1, "source": source} for at in range(citations)],
        "documents": [{"metadata": {"source": "/d/b/a.md", "root": "/d"}}],
    }


def test_answer_certainty_and_sources(told: Told) -> None:
    assert told(state("Ada did [1].", 1, "likely"), "http://a/") == (
        "Ada did [1].\n\nOutcome: these passages are likely to answer.\n"
        "[1] A title of some length, line 3: http://a/?source=b/a.md#L3"
    )


@pytest.mark.parametrize(("length", "citations"), [(50_000, 0), (2_000, 400), (50_000, 400)])
def test_a_result_stays_short(told: Told, length: int, citations: int) -> None:
    from crag.page.mcp_tools import LONGEST

    text = told(state("a" * length, citations), "http://a/")
    assert len(text) <= LONGEST
    assert "ask with `trace`" in text
    assert "\nOutcome: answered from the sources." in text


def test_a_graph_that_tells_no_certainty_gets_no_line_for_it(told: Told) -> None:
    assert told(state("Ada did.", 0, ""), "http://a/") == "Ada did."
    assert "Outcome" not in told(state("Ada did [1].", 1, ""), "http://a/")
