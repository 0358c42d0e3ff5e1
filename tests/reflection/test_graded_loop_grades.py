"""What a grade and the model's own critiques make of an answer, before any search."""

import pytest

from crag.papers.experiments.poster import (
    GradedAnswer,
    GradeLevel,
    best_of,
    check_grades,
    grades_by_place,
    is_good_enough,
    refusal,
    unread,
    use,
)
from crag.papers.experiments.released_reflection import short_form_score
from crag.parts import Candidate, Passage
from crag.reflection.driver import Offered
from crag.reflection.scoring import critique_of
from crag.reflection.testing import fake_candidate
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import FULLY, NO_SUPPORT, PARTIALLY

ONE, TWO = Passage("One", "first"), Passage("Two", "second")
PARTIAL = {FULLY: 0.1, PARTIALLY: 0.8, NO_SUPPORT: 0.1}
HARD = ReflectionSettings(constraints="hard")


def answer_of(candidate: Candidate) -> GradedAnswer:
    scored = short_form_score(candidate, ReflectionSettings(), has_passage=True)
    return GradedAnswer((critique_of(candidate, scored, (0, ONE)),), candidate.text)


@pytest.mark.parametrize(
    ("candidate", "high", "medium"),
    [
        (fake_candidate("A."), "", ""),
        (fake_candidate("A.")._replace(support=PARTIAL), "", ""),
        (fake_candidate("A.", support=0.4), "neither", ""),
        (fake_candidate("A.", support=None), "neither", ""),
        (fake_candidate("A.", relevance=0.5), "[Relevant]", "[Relevant]"),
        (fake_candidate("A.", relevance=None), "[Relevant]", "[Relevant]"),
        (fake_candidate("[Relevant] #\n[Utility:5]"), "empty", "empty"),
        (fake_candidate("", support=None), "empty", "empty"),
    ],
)
def test_high_wants_relevance_and_support_and_medium_relevance(
    candidate: Candidate, high: str, medium: str
) -> None:
    grades: list[tuple[GradeLevel, str]] = [("high", high), ("medium", medium)]
    for grade, expected in grades:
        why = refusal(candidate, grade, ReflectionSettings())
        assert expected in why
        assert bool(why) == bool(expected)


def test_hard_constraints_refuse_what_says_something_undesired() -> None:
    unsupported = fake_candidate("A.", support=0.1)
    assert refusal(unsupported, "medium", HARD) == "it says [No support / Contradictory]"
    assert refusal(fake_candidate("A."), "medium", HARD) == ""


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (fake_candidate("A.", utility=5), True),
        (fake_candidate("A.", utility=4), True),
        (fake_candidate("A.", utility=3), False),
        (fake_candidate("A.", utility=None), False),
        (fake_candidate("A.", support=0.4), False),
        (fake_candidate("A.", support=None), False),
        (fake_candidate("A.")._replace(support=PARTIAL), False),
    ],
)
def test_good_enough_is_fully_supported_and_of_utility_four_or_five(
    candidate: Candidate, *, expected: bool
) -> None:
    assert is_good_enough(candidate) is expected


def test_a_repeated_passage_has_its_first_grade() -> None:
    offered = Offered()
    doubled = [ONE, TWO, Passage(" One", "first\n")]
    assert grades_by_place(doubled, ["low", "medium", "high"], offered) == {0: "low", 1: "medium"}
    assert [record["title"] for record in offered.records()] == ["One", "Two"]


def test_grades_that_do_not_fit_are_refused() -> None:
    check_grades((ONE,), ["low"])
    check_grades((), [])
    with pytest.raises(ValueError, match="passages: None"):
        check_grades(None, [])
    with pytest.raises(ValueError, match="1 for 2 passages"):
        check_grades((ONE, TWO), ["high"])
    with pytest.raises(ValueError, match="'High'; each must be one of high, medium, low"):
        check_grades((ONE,), ["High"])  # type: ignore[list-item]


def test_a_passage_that_was_not_read_has_no_scores() -> None:
    critique = unread((1, TWO), "its grade is low")
    assert (critique["passage"], critique["title"], critique["text"]) == (1, "Two", "")
    assert (critique["relevance"], critique["support"], critique["total"]) == (None, None, 0.0)
    assert (critique["kept"], critique["chosen"], critique["probabilities"]) == (False, False, {})
    assert (critique["why"], critique["flags"]) == ("its grade is low", ["not_generated"])


def test_the_use_is_told() -> None:
    said = {use("high", mixed=False), use("medium", mixed=True), use("medium", mixed=False)}
    assert {line.partition(": ")[2].partition(",")[0] for line in said} == {
        "of full use",
        "mixed with own knowledge",
        "alone",
    }


def test_the_first_of_the_best_scores_wins_and_the_others_say_why_not() -> None:
    answers = [answer_of(fake_candidate("A.", relevance=share)) for share in (0.6, 0.8, 0.8)]
    assert best_of(answers) is answers[1]
    low, best, equal = (answer.parts[-1]["why"] for answer in answers)
    assert low == f"; score {answers[0].score:.3f} is below {answers[1].score:.3f}"
    assert best == f"; the best score, {answers[1].score:.3f}"
    assert equal == "; as good as an earlier one"


def test_parts_of_an_answer_are_cleaned_one_by_one() -> None:
    """An open tag in the first part does not swallow the second."""
    first = answer_of(fake_candidate("# Draft.<paragraph>made up")).parts
    mixed = GradedAnswer(first + answer_of(fake_candidate("[Relevant]More.[Utility:5]")).parts)
    assert mixed.text == "Draft. More."
    assert (GradedAnswer().text, GradedAnswer().score) == ("", 0.0)
