"""Decomposition and filter."""

from hypothesis import given
from hypothesis import strategies as st

from crag.correction.provenance import unscored
from crag.correction.strips import decompose, kept_best
from crag.state import Source


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.text(max_size=400))
def test_the_default_mode_loses_no_text(text: str) -> None:
    assert squeezed("".join(decompose(text))) == squeezed(text)


def verdicts(scores: list[float], limit: int, threshold: float | None) -> list[tuple[bool, str]]:
    blank = unscored("a", Source(id="1", title="", url="", position=""))
    found = kept_best([{**blank, "score": score} for score in scores], limit, threshold)
    assert [strip["score"] for strip in found] == scores
    return [(strip["kept"], strip["reason"]) for strip in found]


@given(st.lists(st.floats(-1, 1), max_size=40), st.integers(1, 10))
def test_filter_keeps_the_best_that_pass(scores: list[float], limit: int) -> None:
    told = verdicts(scores, limit, -0.5)
    kept = [score for score, (keep, _) in zip(scores, told, strict=True) if keep]
    dropped = [score for score, (keep, _) in zip(scores, told, strict=True) if not keep]
    passing = [score for score in scores if score >= -0.5]
    assert len(kept) == min(limit, max(len(passing), 1), len(scores))
    assert not kept or not dropped or min(kept) >= max(dropped)
    assert all(reason for _, reason in told)


def test_ties_go_to_the_earlier_strip_and_at_least_one_is_kept() -> None:
    assert [keep for keep, _ in verdicts([0.3, 0.3, 0.3], 2, None)] == [True, True, False]
    assert verdicts([-0.5, -0.8], 5, -0.5)[0] == (True, "among the best")
    assert verdicts([-0.9, -0.8], 5, -0.5) == [
        (False, "below the strip threshold -0.5"),
        (True, "best of those below the strip threshold"),
    ]
