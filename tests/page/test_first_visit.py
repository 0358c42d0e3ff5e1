"""What the page says before anybody has asked, as the server tells it."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from crag.graph_registry import OFFERED
from crag.page.first_visit import ROUTES, connected, examples
from crag.runtime.environment import Environment


def chunk(section: str, source: str = "/d/a.md") -> dict[str, Any]:
    return {"source": source, "section": section}


def test_a_heading_becomes_a_question() -> None:
    told = {
        "Guide > How do I install it?": "How do I install it?",
        "What is a `strip`": "What is a strip?",
        "How documents are found": "Explain how documents are found.",
        "Chunks and their places": "What about chunks and their places?",
        "Ada Lovelace and Babbage": "What about Ada Lovelace and Babbage?",
    }
    assert {heading: examples([chunk(heading)]) for heading in told} == {
        heading: [question] for heading, question in told.items()
    }


@pytest.mark.parametrize("heading", ["", "Options", "1. Setup of it", "a b c d e f g h i"])
def test_a_heading_that_says_too_little_or_too_much_is_left_out(heading: str) -> None:
    assert examples([chunk(heading), {"source": "/d/b.md"}]) == []


def test_three_are_chosen_from_several_files_whatever_their_order() -> None:
    stored = [chunk(f"Part {name} of it", f"/d/{name[0]}.md") for name in ("aa", "ab", "b", "c")]
    chosen = examples(stored)
    assert len(chosen) == 3
    assert chosen == examples(stored[::-1])
    assert not any("ab of it" in question for question in chosen)
    assert len(examples([*stored[:2], stored[0]])) == 2


def test_what_is_connected_is_named_without_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "TAVILY_API_KEY", "SEARXNG_URL", "CRAG_SEARCH", "CRAG_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert connected(Environment()) == {"model": None, "web": None}
    local = Environment(model="/models/small", search="wikipedia")
    assert connected(local) == {"model": "small", "web": "Wikipedia"}


def test_graphs_are_named_even_where_a_part_is_set_up_wrongly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRAG_SEARCH", "nothing-of-this-name")
    told = TestClient(Starlette(routes=ROUTES)).get("/about").json()
    assert told == {"graphs": {name: entry.title for name, entry in OFFERED.items()}}
