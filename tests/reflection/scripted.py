"""What the tests of all forms share: passages, scripted segments, and a driver around them."""

import json
from typing import Any

from langchain_core.documents import Document

from crag.parts import Candidate, ReflectionBackend
from crag.reflection.beam import beam_round
from crag.reflection.driver import Asked, Driver
from crag.settings import Settings
from crag.state import Ending, OfferedPassage, Reflection
from crag.testing import FakeRetriever, Table, fake_candidate


def passage(title: str, text: str, grade: Any = "") -> OfferedPassage:
    """Return an offered passage."""
    return OfferedPassage(title=title, text=text, label="document", grade=grade, strips=[])


ONE, TWO, THREE = passage("One", "first"), passage("Two", "second"), passage("Three", "third")
ASKED = Asked("Who?", "who", passages=(ONE, TWO))
YES, NO, MORE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"


def settings_of(**more: Any) -> Settings:
    """Return settings that always retrieve, unless others are given."""
    return Settings.model_validate({"retrieval_mode": "always", **more})


def part(text: str, share: float, ending: Ending = "retrieve", **more: Any) -> Candidate:
    """Return a segment in the midst of an answer; its score is `share` plus a constant."""
    more.setdefault("utility", None)
    return fake_candidate(text, relevance=share, support=0.9, ending=ending, **more)


def last(text: str, share: float, **more: Any) -> Candidate:
    """Return a segment that ends its answer."""
    return part(text, share, "end", **more)


class Searching(FakeRetriever):
    """Returns the passages of the tests, and remembers the queries."""

    @classmethod
    def of(cls, *passages: OfferedPassage) -> "Searching":
        """Return a retriever of these passages."""
        documents = [Document(one["text"], metadata={"title": one["title"]}) for one in passages]
        return cls(documents=documents)


def searched(
    backend: ReflectionBackend, settings: Settings, *passages: OfferedPassage
) -> Reflection:
    """Answer by a beam search over the passages."""
    asked = ASKED._replace(passages=passages or (ONE, TWO))
    return whole(asked, Driver(backend, settings))


def whole(asked: Asked, driver: Driver) -> Reflection:
    """Answer by a beam search; each round's record travels as JSON."""
    record = beam_round(asked, driver)
    while record["beam"] is not None:
        kept = json.dumps(record)
        before, record = record, beam_round(asked._replace(record=json.loads(kept)), driver)
        assert json.dumps(before) == kept
    return record


TREE: Table = {
    ("", "first"): part("[Relevant]A.", 0.9),
    ("", "second"): part("[Relevant]B.", 0.8),
    ("[Relevant]A.", "first"): last("A1.", 0.6),
    ("[Relevant]A.", "second"): last("A2.", 0.7),
    ("[Relevant]B.", "first"): last("B1.", 0.9),
    ("[Relevant]B.", "second"): last("B2.", 0.1),
}
