"""The beam search against an exhaustive and a greedy one, on random trees."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.driver import Asked, ReflectionOutcome
from crag.reflection.long_form import long_form
from crag.reflection.scoring import score as score_of
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_settings import ReflectionSettings
from tests.reflection.scripted import run

PASSAGES = [Passage(f"T{place}", f"passage {place}") for place in range(3)]
TREES = st.integers(0, 10**9)
ACCUMULATIONS = st.sampled_from(["sum", "mean", "product"])
Path = tuple[tuple[str, ...], tuple[float, ...]]
"""Texts and scores of the segments."""


class Tree:
    """Candidates drawn from a seed, the prefix and the passage; no two texts are the same."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        assert passage is not None
        seed = f"{self._seed}/{prefix.answered}/{passage.text}"
        draw = random.Random(seed)  # noqa: S311 - made-up data
        is_last = draw.random() < 0.3
        return fake_candidate(
            f"{passage.title}{draw.randrange(10**6)}.",
            relevance=draw.random(),
            support=draw.random(),
            utility=draw.randrange(1, 6) if is_last else None,
            mean_log_probability=-3 * draw.random(),
            ending="end" if is_last else "retrieve",
        )


def accumulated(scores: Sequence[float], how: str) -> float:
    if how == "product":
        product = 1.0
        for score in scores:
            product *= score
        return product
    return sum(scores) / (len(scores) if how == "mean" else 1)


def children(tree: Tree, path: Path, passages: Sequence[Passage]) -> list[tuple[Path, bool]]:
    prefix = Prefix("Who?", "".join(path[0]))
    found = []
    for passage in passages:
        candidate = tree(prefix, passage)
        score = score_of(candidate, ReflectionSettings(), has_passage=True).total
        grown = ((*path[0], candidate.text), (*path[1], score))
        found.append((grown, candidate.ending == "end"))
    return found


def leaves(
    tree: Tree, passages: Sequence[Passage], depth: int, path: Path = ((), ())
) -> list[Path]:
    """Return all answers: those that ended, and those at the greatest depth."""
    found = []
    for grown, ended in children(tree, path, passages):
        is_leaf = ended or len(grown[0]) == depth
        found += [grown] if is_leaf else leaves(tree, passages, depth, grown)
    return found


def greedy(tree: Tree, passages: Sequence[Passage], depth: int, how: str) -> Path:
    path, ended = ((), ()), False
    while not ended and len(path[0]) < depth:
        options = children(tree, path, passages)
        path, ended = max(options, key=lambda option: accumulated(option[0][1], how))
    return path


def search(tree: Tree, passages: Sequence[Passage], **values: Any) -> ReflectionOutcome:
    options = ReflectionSettings.model_validate({"retrieval_mode": "always", **values})
    asked = Asked("Who?", "who")
    return run(long_form(asked, options), FakeReflection(tree), lambda _: passages)


@settings(deadline=None)
@given(TREES, st.integers(1, 3), st.integers(1, 3), ACCUMULATIONS)
def test_a_beam_wide_enough_finds_the_optimum(seed: int, count: int, depth: int, how: str) -> None:
    tree, passages = Tree(seed), PASSAGES[:count]
    found = search(tree, passages, beam_width=27, max_depth=depth, accumulation=how)
    paths = leaves(tree, passages, depth)
    best = max(paths, key=lambda path: accumulated(path[1], how))
    assert found["score"] == pytest.approx(accumulated(best[1], how))
    assert found["raw"] == "".join(best[0])


@settings(deadline=None)
@given(TREES, st.integers(1, 3), st.integers(1, 4), ACCUMULATIONS)
def test_width_one_is_greedy(seed: int, count: int, depth: int, how: str) -> None:
    tree, passages = Tree(seed), PASSAGES[:count]
    found = search(tree, passages, beam_width=1, max_depth=depth, accumulation=how)
    path = greedy(tree, passages, depth, how)
    assert found["raw"] == "".join(path[0])
    assert found["score"] == pytest.approx(accumulated(path[1], how))


@settings(deadline=None)
@given(TREES, st.permutations(PASSAGES), st.integers(1, 4), ACCUMULATIONS)
def test_the_order_of_siblings_never_matters(
    seed: int, shuffled: list[Passage], width: int, how: str
) -> None:
    values = {"beam_width": width, "max_depth": 3, "accumulation": how}
    one, other = (search(Tree(seed), order, **values) for order in (PASSAGES, shuffled))
    assert (other["raw"], other["score"]) == (one["raw"], one["score"])
    assert scores_by_text(other) == scores_by_text(one)


def scores_by_text(found: ReflectionOutcome) -> dict[tuple[int, str], tuple[float, bool]]:
    """Return each candidate's score and fate; texts are unique."""
    scores = {(c["segment"], c["text"]): (c["total"], c["kept"]) for c in found["critiques"]}
    assert len(scores) == len(found["critiques"])
    return scores


@settings(deadline=None)
@given(TREES, st.integers(1, 3), st.integers(1, 3))
def test_a_run_stays_within_its_bounds(seed: int, width: int, depth: int) -> None:
    found = search(Tree(seed), PASSAGES, beam_width=width, max_depth=depth)
    rounds = [[c for c in found["critiques"] if c["segment"] == d] for d in range(depth + 1)]
    assert rounds[depth] == []
    assert all(sum(c["kept"] for c in critiques) <= width for critiques in rounds)
    assert all(len(critiques) <= width * len(PASSAGES) for critiques in rounds)
    assert 1 <= sum(c["chosen"] for c in found["critiques"]) <= depth
