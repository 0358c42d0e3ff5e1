"""Short form: the decision, the competition of candidates, and what odd input leads to."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.driver import Driver
from crag.reflection.short_form import short_form
from crag.settings import Settings
from crag.state import OfferedPassage, Reflection
from crag.testing import FakeReflection, fake_candidate
from tests.reflection.scripted import ASKED, ONE, THREE, TWO, passage, settings_of

PASSAGES = (ONE, TWO, THREE)
CLOSED = ASKED._replace(closed=True)
ALWAYS = settings_of()


def backend_of(*candidates: Candidate, **more: Any) -> FakeReflection:
    """Return a back end with one candidate for each of the passages, and one without."""
    table: dict[tuple[str, str | None], Candidate] = {
        ("", one["text"]): candidate for one, candidate in zip(PASSAGES, candidates, strict=False)
    }
    table["", None] = fake_candidate("[No Retrieval]Nobody.", relevance=None, support=None)
    return FakeReflection(table, **more)


def texts(*values: tuple[str, float]) -> FakeReflection:
    """Return a back end whose candidates have these texts and shares of relevance."""
    return backend_of(*(fake_candidate(text, relevance=value) for text, value in values))


def answer(
    backend: FakeReflection,
    settings: Settings = ALWAYS,
    passages: tuple[OfferedPassage, ...] = PASSAGES,
    *,
    closed: bool = False,
) -> Reflection:
    asked = (CLOSED if closed else ASKED)._replace(passages=passages)
    return short_form(asked, Driver(backend, settings))


def test_the_best_candidate_answers_from_one_batch() -> None:
    backend = texts(("[Relevant]A.[Utility:5]", 0.2), ("[Relevant]B.", 0.8), ("C.", 0.5))
    record = answer(backend)
    assert (record["answer"], record["raw"], record["cited"]) == ("B.", "[Relevant]B.", [1])
    [(asked, limits)] = backend.rounds
    assert [one.prefix for one in asked] == [Prefix("Who?", bare_question="who")] * 3
    assert (limits.max_tokens, limits.whole_answer) == (100, True)
    assert [critique["chosen"] for critique in record["critiques"]] == [False, True, False]
    assert record["score"] == max(critique["total"] for critique in record["critiques"])
    assert "below" in record["critiques"][0]["why"]
    assert json.loads(json.dumps(record)) == record


def test_closed_tasks_sum_over_identical_answers() -> None:
    backend = texts(("true", 0.8), ("[Relevant] false\n", 0.5), ("false[Utility:5]", 0.5))
    assert answer(backend)["answer"] == "true"
    record = answer(backend, closed=True)
    assert record["answer"] == "false"
    totals = [critique["total"] for critique in record["critiques"]]
    assert record["score"] == pytest.approx(totals[1] + totals[2])
    assert [critique["chosen"] for critique in record["critiques"]] == [False, True, True]


def test_answers_are_cleaned() -> None:
    text = "[Relevant]# One\nday.[Fully supported]<paragraph>made up</paragraph> [3] <|im_end|>"
    record = answer(texts((text, 0.8)))
    assert record["answer"] == "One day. (3) ‹|im_end|›"


def test_an_empty_candidate_wins_against_nothing() -> None:
    record = answer(texts(("[Relevant][Utility:5]", 1.0), ("B.", 0.0)))
    assert record["answer"] == "B."
    assert record["critiques"][0]["why"] == "it is empty"
    nothing = answer(FakeReflection({}), passages=(ONE, TWO))
    assert (nothing["answer"], nothing["flags"]) == ("", ["empty"])
    assert answer(FakeReflection({}), closed=True)["answer"] == ""


def test_hard_constraints_drop_what_calls_itself_unsupported() -> None:
    hard = settings_of(constraints="hard")
    backend = backend_of(
        fake_candidate("A.", relevance=1.0, support=0.4),
        fake_candidate("B.", relevance=0.0, support=0.6),
    )
    assert answer(backend, passages=(ONE, TWO))["answer"] == "A."
    record = answer(backend, hard, (ONE, TWO))
    assert record["answer"] == "B."
    assert record["critiques"][0]["why"] == "it says [No support / Contradictory]"
    alone = answer(backend, hard, (ONE,))
    assert (alone["answer"], alone["flags"]) == ("A.", ["constraint_fallback"])


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=6, unique=True),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_the_order_of_passages_does_not_matter(
    shares: list[int], random: Any, closed: bool
) -> None:
    passages = tuple(passage(f"T{place}", f"text {place}") for place in range(len(shares)))
    by_text = {
        one["text"]: fake_candidate(f"{share % 3}", relevance=share / 1000)
        for one, share in zip(passages, shares, strict=True)
    }

    def candidate(_: Prefix, offered: Passage | None) -> Candidate:
        assert offered is not None
        return by_text[offered.text]

    shuffled = tuple(random.sample(passages, len(passages)))
    one, other = (
        answer(FakeReflection(candidate), passages=each, closed=closed)
        for each in (passages, shuffled)
    )
    assert other["answer"] == one["answer"] or closed  # Sums may tie.
    assert other["score"] == pytest.approx(one["score"])
