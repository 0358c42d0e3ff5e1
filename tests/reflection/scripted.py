"""A beam search over scripted segments, for tests."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from crag.parts import Candidate, Decision, Passage, ReflectionBackend
from crag.reflection.driver import Asked, ReflectionOutcome, Steps, Watcher, arun
from crag.reflection.long_form import long_form
from crag.reflection.testing import FakeReflection, Table, fake_candidate
from crag.reflection_settings import ReflectionSettings
from crag.runtime.waiting import blocking
from crag.state import Ending

Result = TypeVar("Result")
ONE, TWO = Passage("One", "first"), Passage("Two", "second")
ASKED = Asked("Who?", "who")
YES, NO, MORE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"


def run(
    steps: Steps[Result],
    backend: ReflectionBackend,
    search: Callable[[str], Sequence[Passage]],
    watch: Watcher | None = None,
) -> Result:
    """Run an algorithm to its end, with one call after the other."""

    async def searched(query: str) -> Sequence[Passage]:
        return search(query)

    return blocking(arun(steps, backend, searched, watch))


def part(text: str, share: float, ending: Ending = "retrieve", **more: Any) -> Candidate:
    """Return a segment in the midst of an answer; its score is `share` plus a constant."""
    more.setdefault("utility", None)
    return fake_candidate(text, relevance=share, support=0.9, ending=ending, **more)


def last(text: str, share: float, **more: Any) -> Candidate:
    return part(text, share, "end", **more)


def options_of(*compat: str, **more: Any) -> ReflectionSettings:
    return ReflectionSettings.model_validate({"retrieval_mode": "always", "compat": compat, **more})


class Searching:
    """Return the passages given, in turn and then the last ones again."""

    def __init__(self, *turns: Sequence[Passage]) -> None:
        self.turns, self.queries = turns, list[str]()

    def __call__(self, query: str) -> Sequence[Passage]:
        self.queries.append(query)
        return self.turns[min(len(self.queries), len(self.turns)) - 1]

    async def later(self, query: str) -> Sequence[Passage]:
        return self(query)


def answer(
    backend: Any, options: ReflectionSettings, *passages: Passage, **more: Any
) -> ReflectionOutcome:
    search = Searching(passages or (ONE, TWO))
    return run(long_form(ASKED, options, **more), backend, search)


def contexts(backend: FakeReflection) -> list[str]:
    return [prefix.answered for prefix, _, _ in backend.generated]


TREE: Table = {
    ("", "first"): part("[Relevant]A.", 0.9),
    ("", "second"): part("[Relevant]B.", 0.8),
    ("[Relevant]A.", "first"): last("A1.", 0.6),
    ("[Relevant]A.", "second"): last("A2.", 0.7),
    ("[Relevant]B.", "first"): last("B1.", 0.9),
    ("[Relevant]B.", "second"): last("B2.", 0.1),
}
LEAKED = {
    ("[Relevant]A.[Relevant]B.", text): last(f"leak {text}.", 1.0) for text in ("first", "second")
}


def adaptive(table: Table, decisions: dict[str, Decision], **more: Any) -> FakeReflection:
    return FakeReflection(table, decisions, **more)


def unsupported(text: str, share: float = 1.0) -> Candidate:
    return fake_candidate(text, relevance=share, support=0.45, utility=None)
