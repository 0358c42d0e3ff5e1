"""How far a passage bears a text out, and what of it is set off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.answering.quoting import set_off
from crag.answering.support import AT_THRESHOLD, agreement, degree_of, is_quoted
from crag.parts import Passage
from crag.reading import Span
from crag.state import Thresholds

TOWER = Passage(
    "Eiffel Tower", "It was completed in 1889\u00ad for the World's Fair. [Relevant] Rain fell."
)
LIMITS = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(
    lambda pair: Thresholds(lower=min(pair), upper=max(pair))
)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2), LIMITS)
def test_a_degree_never_falls_with_the_score(scores: list[float], limits: Thresholds) -> None:
    degrees = [degree_of(score, limits) for score in sorted(scores)]
    assert degrees == sorted(degrees)
    assert all(0 <= degree <= 1 for degree in degrees)


@given(LIMITS, st.floats(-2, 2))
def test_a_degree_is_continuous(limits: Thresholds, score: float) -> None:
    assert degree_of(score + 1e-6, limits) - degree_of(score, limits) < 1e-4


def test_thresholds_bound_what_is_near_one_and_near_zero() -> None:
    limits = Thresholds(upper=0.6, lower=-0.9)
    assert degree_of(0.6, limits) == pytest.approx(AT_THRESHOLD)
    assert degree_of(-0.9, limits) == pytest.approx(1 - AT_THRESHOLD)
    assert degree_of(-0.15, limits) == pytest.approx(0.5)
    single = Thresholds(upper=0.0, lower=0.0)
    assert degree_of(-1.0, single) < 1e-6
    assert degree_of(1.0, single) > 1 - 1e-6


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("The tower was completed in 1889.", 1.0),
        ("COMPLETED: 1889[Fully supported]", 1.0),
        ("The tower was completed in 1887.", 0.0),
        ("The tower was demolished.", 0.5),
        ("Kettles need vinegar.", 0.0),
        ("It was.", 1.0),
        ("", 0.0),
        ("[Fully supported]", 0.0),
        ("…!", 0.0),
    ],
)
def test_agreement_is_the_share_of_words_and_names_that_tell(text: str, share: float) -> None:
    assert agreement(text, TOWER) == pytest.approx(share)


@given(st.text(), st.text(), st.text())
def test_agreement_is_a_share(text: str, title: str, passage: str) -> None:
    assert 0 <= agreement(text, Passage(title, passage)) <= 1


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("It was completed in 1889 for the World's Fair.", True),
        ("it was COMPLETED in 1889", True),
        ("Rain fell. It was completed in 1889 for the World's Fair.", True),
        ("(Relevant) Rain fell.", True),
        ("It was completed in 188", False),
        ("In 1889 it was completed.", False),
        ("Rain fell. The Tower fell.", False),
        ("Eiffel Tower", False),
        ("", False),
        ("…", False),
    ],
)
def test_a_quotation_stands_in_the_passage_word_by_word(text: str, *, quoted: bool) -> None:
    assert is_quoted(text, TOWER) == quoted


@pytest.mark.parametrize(
    ("question", "text", "found", "shown"),
    [
        ("What is the limit?", "The limit is 1,260.50 EUR a night.", "260", "1,260.50 EUR"),
        ("When does it end?", "It ends on 30 June 2025 and not before.", "June", "30 June 2025"),
        ("When does it end?", "It ends on 2025-06-30.", "06", "2025-06-30"),
        ("How long?", "It runs for 36 months.", "36", "36 months"),
        ("Who was there?", "Present: Ines Okafor, Tom Hale and Priya Raman.", "Tom",
         "Ines Okafor, Tom Hale and Priya Raman"),
        ("What is the rate limit?", "The rate limit is kept low.", "rate limit", None),
        ("What is the limit?", "The limit is 3 or 4.", "", None),
        ("On which shelf is the long level?", "article: Long level\nshelf: B2", "B2", "B2"),
    ],
)  # fmt: skip
def test_the_whole_is_set_off(question: str, text: str, found: str, shown: str | None) -> None:
    start = text.index(found)
    span = Span(start=start, end=start + len(found), score=0.5 if found else -0.5)
    place = set_off(question, text, span, (0, len(text)))
    assert (place and text[slice(*place)]) == shown
    assert set_off(question, text, span, (0, start)) is None
    assert set_off(question, text, {**span, "score": 0.0}, (0, len(text))) is None


def test_what_is_set_off_may_be_all_of_a_quotation_and_takes_nothing_beside_it() -> None:
    assert set_off("How long?", "30 days.", Span(start=0, end=7, score=0.5), (0, 7)) == (0, 7)
    span = Span(start=4, end=10, score=0.5)
    assert set_off("Which?", "Rome(Oslo)Kiel", span, (0, 14)) == (4, 10)
