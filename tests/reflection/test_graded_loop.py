"""The poster's variant: what a passage is used for, where the loop ends, and its bounds."""

import math
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import ModelError
from crag.parts import Candidate, Decision, Passage, Prefix
from crag.reflection.cleaning import cleaned, short_answer
from crag.reflection.driver import Asked, Driver
from crag.reflection.graded_loop import graded_loop
from crag.reflection_tokens import FULLY, NO_RETRIEVAL, TOKENS
from crag.settings import Settings
from crag.state import Ending, Reflection
from crag.testing import FakeReflection, fake_candidate
from tests.reflection.scripted import passage, settings_of

TEXTS = ("first", "second", "third")
ALWAYS = settings_of()
DRAFT = "I guess.[Utility:4]"
MIXED = NO_RETRIEVAL + DRAFT


def backend_of(
    *candidates: Candidate, draft: str = DRAFT, mixed: Sequence[Candidate] = (), **more: Any
) -> FakeReflection:
    """Return a back end with a candidate for each passage: alone, and `mixed` after the draft."""
    table: dict[tuple[str, str | None], Candidate] = {
        ("", None): fake_candidate(draft, relevance=None, support=None)
    }
    for before, made in (("", candidates), (NO_RETRIEVAL + draft, mixed)):
        table |= {(before, text): one for text, one in zip(TEXTS, made, strict=False)}
    return FakeReflection(table, **more)


def so_so(text: str, relevance: float = 0.9) -> Candidate:
    """Return a candidate that is of use but does not end the loop."""
    return fake_candidate(text, relevance=relevance, utility=3)


def answer(
    backend: FakeReflection,
    *grades: str,
    settings: Settings = ALWAYS,
    own_knowledge: bool = False,
) -> Reflection:
    settings = settings.model_copy(update={"allow_own_knowledge": own_knowledge})
    passages = tuple(passage("T", text, grade) for text, grade in zip(TEXTS, grades, strict=False))
    return graded_loop(Asked("Who?", "Who?", passages=passages), Driver(backend, settings))


def asked_for(backend: FakeReflection) -> list[tuple[str, str | None]]:
    """Return what was answered before and the passage of each request."""
    return [
        (prefix.answered, offered.text if offered else None)
        for asked, _ in backend.rounds
        for prefix, offered in asked
    ]


def whys(record: Reflection) -> list[str]:
    return [critique["why"] for critique in record["critiques"]]


def chosen(record: Reflection) -> list[int | None]:
    return [critique["passage"] for critique in record["critiques"] if critique["chosen"]]


def test_a_factual_and_complete_answer_ends_the_loop() -> None:
    backend = backend_of(so_so("[Relevant]A."), fake_candidate("[Relevant]B.[Utility:5]"))
    record = answer(backend, "high", "high", "high")
    assert (record["answer"], record["raw"]) == ("B.", "[Relevant]B.[Utility:5]")
    assert asked_for(backend) == [("", "first"), ("", "second")]
    assert (record["cited"], chosen(record), record["flags"]) == ([1], [1], [])
    assert record["score"] == record["critiques"][1]["total"]
    assert whys(record) == [
        "its grade is high: of full use",
        "its grade is high: of full use; it is factual and complete",
        "an earlier answer is factual and complete",
    ]
    assert [critique["kept"] for critique in record["critiques"]] == [True, True, False]


@pytest.mark.parametrize(
    ("grade", "candidate", "why"),
    [
        ("low", fake_candidate("A."), "its grade is low"),
        ("high", fake_candidate("A.", relevance=0.4), "it does not say [Relevant]"),
        ("high", fake_candidate("A.", support=0.4), "it says neither [Fully supported] nor"),
        ("high", fake_candidate("A.", support=None), "it says neither [Fully supported] nor"),
        ("high", fake_candidate("[Relevant][Utility:5]"), "it is empty"),
        ("medium", fake_candidate("A.", relevance=0.4), "it does not say [Relevant]"),
    ],
)
def test_what_is_of_no_use_is_skipped(grade: str, candidate: Candidate, why: str) -> None:
    backend = backend_of(candidate, so_so("B."), mixed=[candidate])
    record = answer(backend, grade, "high")
    assert (record["answer"], record["cited"]) == ("B.", [1])
    [skipped] = [critique for critique in record["critiques"] if critique["passage"] == 0]
    assert skipped["why"].startswith(why)
    assert (skipped["kept"], skipped["chosen"]) == (False, False)
    assert (skipped["relevance"] is None) == (grade == "low")
    assert ("", "first") not in asked_for(backend) or grade == "high"


def test_a_medium_grade_is_mixed_with_the_one_draft() -> None:
    mixed = [so_so("[Relevant]More.[Partially supported]", 0.6), so_so("[Relevant]Else.", 0.8)]
    backend = backend_of(mixed=mixed)
    record = answer(backend, "medium", "")
    assert asked_for(backend) == [("", None), (MIXED, "first"), (MIXED, "second")]
    assert (record["answer"], record["raw"]) == ("I guess. Else.", f"{MIXED}[Relevant]Else.")
    assert (record["cited"], chosen(record)) == ([1], [None, 1])
    assert [critique["segment"] for critique in record["critiques"]] == [0, 1, 1]
    assert "mixed with own knowledge" in whys(record)[2]


@pytest.mark.parametrize(("grade", "requests"), [("high", 1), ("medium", 2), ("low", 0)])
def test_own_knowledge_alone_answers_only_if_it_may(grade: str, requests: int) -> None:
    skipped = fake_candidate("A.", relevance=0.1)
    backend = backend_of(skipped, mixed=[skipped])
    record = answer(backend, grade)
    assert (record["answer"], record["cited"], record["flags"]) == ("", [], ["empty"])
    assert len(backend.rounds) == requests
    record = answer(backend_of(skipped, mixed=[skipped]), grade, own_knowledge=True)
    assert (record["answer"], record["raw"], record["cited"]) == ("I guess.", DRAFT, [])
    [draft] = [critique for critique in record["critiques"] if critique["chosen"]]
    assert draft["why"] == "the answer without a passage: no passage was of use"


def test_a_failure_ends_it_if_a_passage_was_of_use_before() -> None:
    record = answer(backend_of(so_so("A."), fails_after=1), "high", "medium", "high")
    assert (record["answer"], record["flags"]) == ("A.", ["model_failed"])
    assert whys(record)[1:] == ["the model failed"] * 2
    with pytest.raises(ModelError, match="set to fail"):
        answer(backend_of(fake_candidate("A.", relevance=0.1), fails_after=1), "high", "high")


NUMBERS = st.floats() | st.floats(0, 1)
SHARES = st.none() | st.dictionaries(st.sampled_from([*TOKENS, "other"]), NUMBERS)
CANDIDATES = st.builds(
    Candidate,
    text=st.sampled_from(["", "#", "[Relevant]A.[Utility:5]", "B.<paragraph>x", "[Retrieval]C."]),
    relevance=SHARES | st.just({"[Relevant]": 0.9}),
    support=SHARES | st.just({FULLY: 0.9}),
    utility=SHARES,
    mean_log_probability=NUMBERS,
    tokens=st.integers(0, 30),
    ending=st.sampled_from(get_args(Ending)),
    end_log_probability=st.none(),
    retrieve=st.just(()),
)
GRADES = st.lists(st.sampled_from(["high", "medium", "low"]), max_size=3)


@given(GRADES, st.lists(CANDIDATES, min_size=7, max_size=7), SHARES, st.booleans())
def test_it_is_bounded_and_never_raises(
    grades: list[str], candidates: list[Candidate], shares: Any, own_knowledge: bool
) -> None:
    def candidate(prefix: Prefix, offered: Passage | None) -> Candidate:
        place = 6 if offered is None else TEXTS.index(offered.text)
        return candidates[place + (3 if prefix.answered else 0)]

    backend = FakeReflection(candidate, decision=Decision(shares or {}, "[Retrieval]"))
    settings = Settings(form="poster")
    record = answer(backend, *grades, settings=settings, own_knowledge=own_knowledge)
    requests = asked_for(backend)
    assert len({text for _, text in requests}) == len(requests) <= len(grades) + 1
    assert all(text is None or grades[TEXTS.index(text)] != "low" for _, text in requests)
    parts = [critique for critique in record["critiques"] if critique["chosen"]]
    assert record["cited"] == [part["passage"] for part in parts if part["passage"] is not None]
    assert record["answer"] == short_answer(" ".join(cleaned(part["text"]) for part in parts))
    assert bool(record["answer"]) == bool(parts) == ("empty" not in record["flags"])
    assert math.isfinite(record["score"])
