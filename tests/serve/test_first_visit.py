"""What the page says before anybody has asked, and of two answers to one question."""

from typing import Any

import httpx
import pytest

from crag.runtime.environment import Environment
from crag.serve.first_visit import connected, examples


def chunk(section: str, source: str = "/d/a.md") -> dict[str, Any]:
    return {"source": source, "section": section}


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Guide > How do I install it?", "How do I install it?"),
        ("What is a `strip`", "What is a strip?"),
        ("How to brew green tea", "How to brew green tea?"),
        ("Chunks and their places", "What is said about chunks and their places?"),
        ("Ada Lovelace and Babbage", "What is said about Ada Lovelace and Babbage?"),
    ],
)
def test_a_heading_becomes_a_question(heading: str, question: str) -> None:
    assert examples([chunk(heading)]) == [question]


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


def test_what_is_connected_is_named_without_paths(client: httpx.Client) -> None:
    local = Environment(model="/models/small", search="wikipedia")
    assert connected(local) == {"model": "small", "web": "Wikipedia"}
    told = client.get("/api/about").json()
    assert (told["model"], told["web"], told["graphs"]["crag"]) == (None, None, "Corrected")


def strip(document: str, text: str, *, kept: bool = True) -> dict[str, Any]:
    source = {"id": document, "title": "", "url": "", "position": ""}
    strip = {"text": text, "kind": "document", "source": source, "score": None}
    return {**strip, "kept": kept, "reason": ""}


def test_what_correction_changed_is_told_as_the_terminal_tells_it(client: httpx.Client) -> None:
    plain = {"strips": [strip("a", "One. Two."), strip("b", "Three.")]}
    corrected = {
        "strips": [
            strip("a", "One."),
            strip("a", "Two.", kept=False),
            strip("hit-1", "Five."),
        ],
    }
    told = client.post("/api/compare", json={"plain": plain, "corrected": corrected}).json()
    texts = {name: [one["text"] for one in strips] for name, strips in told.items()}
    assert texts == {"dropped": ["Three."], "shortened": ["One. Two."], "added": ["Five."]}
    wrong = client.post("/api/compare", json={"plain": plain, "corrected": {"strips": 3}})
    assert wrong.status_code == 400
    assert wrong.json()["message"].startswith("corrected.strips: Input should be")
