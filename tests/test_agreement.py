"""What agrees with the official programs of both papers keeps agreeing.

Each reference is written here from the description in docs/method, independently of the code under
test, and compared over random inputs; `tests/papers/released` compares whole runs of Self-RAG with
what its own programs answered. The figures "equal in n of n" show with ``pytest -s``.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from crag.correction.action import decide
from crag.correction.provenance import unscored
from crag.correction.strips import kept_best, recompose, score_of
from crag.papers.metrics.citing import cited
from crag.parts import Candidate
from crag.reflection.scoring import critique_of
from crag.reflection_tokens import RELEVANCE, SUPPORT, UTILITY
from crag.settings import Settings
from crag.state import Source, Strip

RUNS = 2000
WORDS = ["Ada", "wrote", "the", "first", "program", "an", "engine", "in", "1843", "true", "Paris"]


def agree(name: str, runs: int, one: Callable[[random.Random], tuple[Any, Any]]) -> None:
    """Assert that all pairs are equal, and print of how many this holds."""
    pairs = [one(random.Random(seed)) for seed in range(runs)]  # noqa: S311 - made-up data
    same = sum(ours == theirs for ours, theirs in pairs)
    print(f"{name}: equal in {same} of {runs}")  # noqa: T201 - the figure; see it with -s
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def test_the_action_of_a_set() -> None:
    def one(draw: random.Random) -> tuple[str, str]:
        upper, lower = draw.choice([(0.592, -0.995), (0.5, -0.915), (0.95, -0.91)])
        grid = [upper, lower, draw.uniform(-1.2, 1.2), draw.uniform(-1.2, 1.2), -1.0]
        scores = [draw.choice(grid) for _ in range(draw.randrange(11))]
        flags = [2 if s >= upper else 1 if s >= lower else 0 for s in scores]
        action = "correct" if 2 in flags else "ambiguous" if 1 in flags else "incorrect"
        return decide(scores, upper, lower), action

    agree("action", 20_000, one)


def strips_of(scores: Sequence[float], count: int, threshold: float | None) -> list[Strip]:
    source = Source(id="1", title="", url="", position="")
    strips: list[Strip] = [
        {**unscored(str(place), source), "score": score} for place, score in enumerate(scores)
    ]
    return kept_best(strips, count, threshold)


@pytest.mark.parametrize("count", [3, 5, 6])
def test_the_best_strips_of_the_official_code(count: int) -> None:
    def one(draw: random.Random) -> tuple[list[str], list[str]]:
        scores = [round(draw.uniform(-1, 1), 1) for _ in range(draw.randrange(1, 20))]
        ranked = sorted(range(len(scores)), key=lambda place: scores[place], reverse=True)
        found = sorted(recompose(strips_of(scores, count, None)), key=score_of, reverse=True)
        return [strip["text"] for strip in found], [str(place) for place in ranked[:count]]

    agree(f"best {count} by score", RUNS, one)


def test_the_best_strips_of_the_published_files() -> None:
    """At least -0.5, the five best, in their order; the single best one if none is good enough."""

    def one(draw: random.Random) -> tuple[list[str], list[str]]:
        scores = [round(draw.uniform(-1, 0.3), 1) for _ in range(draw.randrange(1, 14))]
        passing = [place for place, value in enumerate(scores) if value >= -0.5]
        passing = sorted(passing, key=lambda place: -scores[place])[:5]
        if not passing:
            passing = [scores.index(max(scores))]
        found = recompose(strips_of(scores, 5, -0.5))
        return [strip["text"] for strip in found], [str(place) for place in sorted(passing)]

    agree("best 5 in order", RUNS, one)


def test_the_graded_scores_of_self_rag() -> None:
    """Equation 3 with the grades of Appendix A.3."""

    def share(seen: Any, token: str) -> float:
        mass = sum((seen or {}).values())
        return (seen or {}).get(token, 0.0) / mass if mass else 0.0

    def one(draw: random.Random) -> tuple[float, float]:
        candidate = judged(draw)
        weights = [draw.choice([0.0, 0.5, 1.0, 2.0]) for _ in range(3)]
        named = ("weight_relevance", "weight_support", "weight_utility")
        settings = Settings.model_validate(dict(zip(named, weights, strict=True)))
        rel = share(candidate.relevance, "[Relevant]")
        sup = share(candidate.support, SUPPORT[0]) + 0.5 * share(candidate.support, SUPPORT[1])
        grades = zip((-1, -0.5, 0, 0.5, 1), UTILITY, strict=True)
        use = sum(grade * share(candidate.utility, token) for grade, token in grades)
        total = math.exp(candidate.mean_log_probability)
        total += weights[0] * rel + weights[1] * sup + weights[2] * use
        return round(critique_of(candidate, 0, settings)["total"], 9), round(total, 9)

    agree("scores of Self-RAG", RUNS, one)


def judged(draw: random.Random) -> Candidate:
    """Draw a candidate, now and then without IsSup or IsUse, or with a token not seen."""

    def shares(group: Sequence[str]) -> dict[str, float]:
        seen = {token: draw.random() for token in group if draw.random() < 0.9}
        return seen or {group[-1]: 1.0}

    return Candidate(
        text="Ada wrote notes.",
        relevance=shares(RELEVANCE),
        support=shares(SUPPORT) if draw.random() < 0.7 else None,
        utility=shares(UTILITY) if draw.random() < 0.7 else None,
        mean_log_probability=-2 * draw.random(),
        tokens=draw.randrange(1, 30),
        ending="end",
    )


def test_citation_recall_and_precision() -> None:
    passages = {number: f"{number}" for number in range(1, 6)}

    def one(draw: random.Random) -> tuple[tuple[float, float], tuple[float, float]]:
        entailing = {n for n in passages if draw.random() < 0.4}
        jointly = draw.random() < 0.3

        def entails(premise: str, hypothesis: str) -> bool:
            assert "[" not in hypothesis
            told = {int(line) for line in premise.splitlines()}
            return bool(told & entailing) or (jointly and len(told) > 1)

        count = draw.randrange(1, 5)
        marks = [[draw.randrange(1, 7) for _ in range(draw.randrange(5))] for _ in range(count)]
        said = [f"Sentence {place} said so" for place in range(count)]
        pairs = zip(said, marks, strict=True)
        answer = " ".join(f"{text}{''.join(f'[{n}]' for n in refs)}." for text, refs in pairs)
        found = cited(answer, passages, entails)
        assert found is not None
        return (found.recall, found.precision), _citation_scores(marks, passages, entails)

    agree("citation recall and precision", RUNS, one)


def _citation_scores(
    marks: Sequence[Sequence[int]], passages: dict[int, str], entails: Callable[[str, str], bool]
) -> tuple[float, float]:
    recalled = counted = precise = 0
    for numbers in marks:
        if not numbers or any(number not in passages for number in numbers):
            continue
        refs = numbers[:3]
        counted += len(refs)
        if not entails("\n".join(passages[n] for n in refs), "it"):
            continue
        recalled += 1
        for place, number in enumerate(refs):
            others = [passages[n] for at, n in enumerate(refs) if at != place]
            alone = len(refs) == 1 or entails(passages[number], "it")
            precise += alone or not entails("\n".join(others), "it")
    return recalled / len(marks), precise / counted if counted else 0.0
