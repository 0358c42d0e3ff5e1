"""A scripted model that reads graded passages, and what it was asked."""

from collections.abc import Sequence
from typing import Any

from crag.papers.experiments.poster import GradeLevel, graded_loop
from crag.parts import Candidate, Passage
from crag.reflection.driver import Asked, ReflectionOutcome
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import FULLY, NO_RETRIEVAL, NO_SUPPORT, PARTIALLY
from tests.reflection.scripted import run

PASSAGES = (Passage("One", "first"), Passage("Two", "second"), Passage("Three", "third"))
ASKED = Asked("Who?", "Who?", passages=PASSAGES)
ALL_HIGH: list[GradeLevel] = ["high", "high", "high"]
ALWAYS = ReflectionSettings(retrieval_mode="always")
DRAFT = "I guess.[Utility:4]"
MIXED = NO_RETRIEVAL + DRAFT
PARTIAL = {FULLY: 0.1, PARTIALLY: 0.8, NO_SUPPORT: 0.1}


def no_search(query: str) -> list[Passage]:
    """Fail: the passages are given."""
    raise AssertionError(query)


async def no_later_search(query: str) -> list[Passage]:
    """Do as `no_search`."""
    return no_search(query)


def backend_of(
    *candidates: Candidate, draft: str = DRAFT, mixed: Sequence[Candidate] = (), **more: Any
) -> FakeReflection:
    """Return a back end with a candidate for each passage: alone, and `mixed` after the draft."""
    table: dict[tuple[str, str | None], Candidate] = {
        ("", None): fake_candidate(draft, relevance=None, support=None)
    }
    for before, made in (("", candidates), (NO_RETRIEVAL + draft, mixed)):
        for passage, candidate in zip(PASSAGES, made, strict=False):
            table[before, passage.text] = candidate
    return FakeReflection(table, **more)


def so_so(text: str, relevance: float = 0.9) -> Candidate:
    """Return a candidate that is of use but does not end the search."""
    return fake_candidate(text, relevance=relevance, utility=3)


def answer(
    backend: FakeReflection,
    grades: Sequence[GradeLevel],
    options: ReflectionSettings = ALWAYS,
    asked: Asked = ASKED,
    **more: Any,
) -> ReflectionOutcome:
    """Drive the poster's variant over as many passages as there are grades."""
    if asked is ASKED:
        asked = asked._replace(passages=PASSAGES[: len(grades)])
    return run(graded_loop(asked, grades, options, **more), backend, no_search)


def asked_for(backend: FakeReflection) -> list[tuple[str, str | None]]:
    """Return what was answered before and the passage of each request, one for each."""
    return [
        (prefix.answered, passage.text if passage else None)
        for prefix, passages, _ in backend.generated
        for passage in (passages if len(passages) == 1 else [Passage("", "not alone")])
    ]


def whys(found: ReflectionOutcome) -> list[str]:
    """Return what is said about each candidate and passage."""
    return [critique["why"] for critique in found["critiques"]]


def chosen(found: ReflectionOutcome) -> list[int | None]:
    """Return the passages of what stands in the answer."""
    return [critique["passage"] for critique in found["critiques"] if critique["chosen"]]
