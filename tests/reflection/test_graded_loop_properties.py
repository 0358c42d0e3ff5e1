"""The poster's variant is bounded and well-formed, whatever a model says."""

import math
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from crag.papers.experiments.poster import GradeLevel
from crag.parts import Candidate, Decision, Passage, Prefix
from crag.reflection.cleaning import cleaned, short_answer
from crag.reflection.driver import Asked
from crag.reflection.testing import FakeReflection
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import FULLY, TOKENS
from crag.state import Ending
from tests.reflection.graded_passages import (
    answer,
    asked_for,
)

NUMBERS = st.floats() | st.floats(0, 1)
PROBABILITIES = st.none() | st.dictionaries(st.sampled_from([*TOKENS, "other"]), NUMBERS)
CANDIDATES = st.builds(
    Candidate,
    text=st.sampled_from(["", "#", "[Relevant]A.[Utility:5]", "B.<paragraph>x", "[Retrieval]C."]),
    relevance=PROBABILITIES | st.just({"[Relevant]": 0.9}),
    support=PROBABILITIES | st.just({FULLY: 0.9}),
    utility=PROBABILITIES,
    mean_log_probability=NUMBERS,
    tokens=st.integers(0, 30),
    ending=st.sampled_from(get_args(Ending)),
    end_log_probability=st.none(),
    retrieve=st.just(()),
)
DECISIONS = st.builds(
    Decision, PROBABILITIES.map(lambda found: found or {}), st.sampled_from([*TOKENS, "The"])
)
GRADED = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(get_args(GradeLevel))), max_size=6)
CASES = st.builds(
    ReflectionSettings,
    retrieval_mode=st.sampled_from(["always", "always", "adaptive", "hard", "never"]),
    constraints=st.sampled_from(["soft", "hard"]),
    max_reflection_tokens=st.sampled_from([1, 40, 20_000]),
)


@given(GRADED, st.lists(CANDIDATES, min_size=11, max_size=11), DECISIONS, CASES, st.booleans())
def test_it_is_bounded_and_never_raises(
    drawn: list[tuple[int, GradeLevel]],
    candidates: list[Candidate],
    decision: Decision,
    options: ReflectionSettings,
    own_knowledge: bool,
) -> None:
    def candidate(prefix: Prefix, passage: Passage | None) -> Candidate:
        if passage is None:
            return candidates[-1]
        return candidates[int(passage.text) + (5 if prefix.answered else 0)]

    passages = tuple(Passage("T", str(number)) for number, _ in drawn)
    grades: list[GradeLevel] = [grade for _, grade in drawn]
    backend = FakeReflection(candidate, otherwise=decision)
    asked = Asked("Who?", "Who?", passages=passages)
    found = answer(backend, grades, options, asked, own_knowledge=own_knowledge)
    requests = asked_for(backend)
    assert len(requests) <= len(set(passages)) + 1
    assert requests.count(("", None)) <= 1
    texts = [text for _, text in requests]
    assert len(set(texts)) == len(texts)
    first: dict[str, GradeLevel] = {}
    for passage, grade in zip(passages, grades, strict=True):
        first.setdefault(passage.text, grade)
    assert all(text is None or first[text] != "low" for text in texts)
    parts = [critique for critique in found["critiques"] if critique["chosen"]]
    assert found["cited"] == [part["passage"] for part in parts if part["passage"] is not None]
    assert all(first[found["passages"][place]["text"]] != "low" for place in found["cited"])
    assert found["answer"] == short_answer(" ".join(cleaned(part["text"]) for part in parts))
    assert bool(found["answer"]) == bool(parts) == ("empty" not in found["flags"])
    assert all(part["kept"] and part["why"] for part in parts)
    assert math.isfinite(found["score"])
    if found["choices"][0]["action"] == "retrieve":
        told = [c["passage"] for c in found["critiques"] if c["passage"] is not None]
        assert told == list(range(len(first)))
        assert own_knowledge or not parts or found["cited"]
