"""Decomposition, filter and recomposition."""

from hypothesis import given
from hypothesis import strategies as st

from crag.correction.strips import choose, decompose
from crag.state import Source

SOURCE = Source(id="1", title="", url="", position="")
TEXT = (
    "Dr. Smith was born in 1950. He studied in Paris! Did he like it? Nobody knows that today. "
    "He died in 2001."
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.text(max_size=400))
def test_the_default_mode_loses_no_text(text: str) -> None:
    assert squeezed("".join(decompose(text))) == squeezed(text)


@given(st.lists(st.floats(-1, 1), max_size=40), st.integers(1, 10))
def test_filter_keeps_the_best_that_pass(scores: list[float], limit: int) -> None:
    verdicts = choose(scores, limit, -0.5)
    kept = [score for score, (keep, _) in zip(scores, verdicts, strict=True) if keep]
    dropped = [score for score, (keep, _) in zip(scores, verdicts, strict=True) if not keep]
    passing = [score for score in scores if score >= -0.5]
    assert len(kept) == min(limit, max(len(passing), 1), len(scores))
    assert not kept or not dropped or min(kept) >= max(dropped)
    assert all(reason for _, reason in verdicts)


def test_ties_go_to_the_earlier_strip_and_at_least_one_is_kept() -> None:
    assert [keep for keep, _ in choose([0.3, 0.3, 0.3], 2, -0.5)] == [
        True, True, False,
    ]  # fmt: skip
    assert choose([-0.9, -0.8], 5, -0.5) == [
        (False, "below the strip threshold -0.5"),
        (True, "best of those below the strip threshold"),
    ]
