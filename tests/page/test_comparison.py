"""What correction changed, asked over HTTP by the page."""

from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from crag.page.comparison import ROUTES

CLIENT = TestClient(Starlette(routes=ROUTES))


def strip(document: str, text: str, *, kept: bool = True) -> dict[str, Any]:
    source = {"id": document, "title": "", "url": "", "position": ""}
    return {"text": text, "source": source, "score": None, "kept": kept, "reason": ""}


def test_it_is_told_as_the_terminal_tells_it() -> None:
    plain = {"internal": [strip("a", "One. Two."), strip("b", "Three.")]}
    corrected = {
        "internal": [strip("a", "One."), strip("a", "Two.", kept=False)],
        "external": [strip("hit-1", "Five.")],
    }
    told = CLIENT.post("/compare", json={"plain": plain, "corrected": corrected}).json()
    texts = {name: [one["text"] for one in strips] for name, strips in told.items()}
    assert texts == {"dropped": ["Three."], "shortened": ["One. Two."], "added": ["Five."]}


def test_what_is_no_state_is_refused_with_the_field() -> None:
    plain = {"internal": [strip("a", "One.")]}
    wrong = CLIENT.post("/compare", json={"plain": plain, "corrected": {"internal": 3}})
    assert wrong.status_code == 422
    assert wrong.json()["detail"].startswith("corrected.internal: Input should be")
    assert CLIENT.post("/compare", content=b"{").status_code == 422
