"""Thresholds fitted to an index without labels."""

from collections.abc import Iterator

import pytest

from crag.errors import TrainingError
from crag.index import DocumentIndex, index_paths
from crag.models.encoder import packaged_encoder
from crag.papers.training.made_questions import MadeQuestion
from crag.papers.training.thresholds import Costs
from crag.papers.training.unlabelled import Judged, Limits, Mixture, judge, report_of
from crag.testing import FakeEvaluator, FakeReadingEvaluator

SENTENCE = "The default size of the pool is only 40 tokens."
MORE = " The handle is cold, the lid is heavy and the shop is open from nine until late." * 12
"""So much that the next section stands in a chunk of its own."""
PAGE = f"""# Pools

{SENTENCE}{MORE}

## Lifeguards

Lifeguards watch the pool from six in the morning.{MORE}
"""
COSTS = Costs(wrong=8, needless=1, discarded=2)


def judged(answered: float, unknown: float, quoted: float = 0.8) -> list[Judged]:
    """Return forty questions whose best documents score about `answered`, and forty without answer.

    The others score about `unknown`; every answer is right and scores `quoted`, the others 0.1.
    """
    rows = []
    for number in range(40):
        place = MadeQuestion(f"Q{number}?", "answered", f"{number}.md", "Use")
        away = number / 1000
        rows.append(Judged(place, (answered + away, -0.9), quoted + away, right=True))
        near = place._replace(kind="near", source=f"near{number}.md")
        rows.append(Judged(near, (unknown + away, -0.95), 0.1 + away, right=False))
    return rows


def test_fitted_thresholds_are_recommended_where_they_save_for_certain() -> None:
    in_use = FakeReadingEvaluator(upper=0.95, lower=-0.5, quote_threshold=0.95)
    report = report_of(in_use, "here", judged(0.6, -0.2), 3, COSTS, 0)
    assert (report.answered, report.near, report.far, report.left_out) == (40, 40, 0, 3)
    assert report.effect_in_use.correct == 0
    assert report.effect_fitted.correct >= 39
    assert report.effect_fitted.wrongly_correct == 0
    # An Ambiguous action costs 1 for each of the 80 questions; and each right answer withheld 2.
    assert report.effect_in_use.action_cost == 100
    assert report.effect_fitted.action_cost < 60
    assert report.effect_in_use.sure_cost == 100
    assert report.action_saving.certain
    assert report.sure_saving is not None
    assert report.sure_saving.certain
    assert -0.161 < report.fitted.upper <= 0.6
    assert report.fitted.lower == -0.5 < report.cheapest.lower
    assert report.fitted.sure is not None
    assert 0.139 < report.fitted.sure < 0.8
    assert report.recommended == report.fitted
    assert report.changes
    assert report.calibration.thresholds == {
        "upper": report.fitted.upper,
        "lower": report.fitted.lower,
    }
    assert report.calibration.quote == report.fitted.sure
    assert report.calibration.questions == 80


def test_thresholds_in_use_are_kept_where_others_are_no_better() -> None:
    in_use = FakeReadingEvaluator(upper=0.3, lower=0.2, quote_threshold=0.5)
    report = report_of(in_use, "here", judged(0.6, -0.2), 0, COSTS, 0)
    assert report.action_saving.mean <= 0
    assert report.recommended == report.in_use == Limits(0.3, 0.2, 0.5)
    assert not report.changes
    assert report.calibration.upper == 0.3


def test_no_threshold_is_raised() -> None:
    in_use = FakeReadingEvaluator(upper=-0.5, lower=-0.9, quote_threshold=-0.5)
    report = report_of(in_use, "here", judged(0.6, -0.2), 0, COSTS, 0)
    assert report.effect_in_use.wrongly_correct == report.effect_in_use.false == 40
    assert report.cheapest.upper > -0.2
    assert report.cheapest.sure is not None
    assert report.cheapest.sure > 0.1
    assert report.fitted == report.recommended == report.in_use


def test_a_chance_difference_changes_nothing() -> None:
    rows = judged(0.6, -0.2)
    # One answer below the threshold in use: what a fit may gain by it is not certain.
    rows[0] = rows[0]._replace(quoted=0.4)
    in_use = FakeReadingEvaluator(upper=0.3, lower=0.2, quote_threshold=0.5)
    report = report_of(in_use, "here", rows, 0, COSTS, 0)
    assert report.fitted.sure is not None
    assert report.fitted.sure < 0.4
    assert report.sure_saving is not None
    assert not report.sure_saving.certain
    assert report.recommended.sure == 0.5


def test_each_pair_of_thresholds_changes_for_itself() -> None:
    in_use = FakeReadingEvaluator(upper=0.3, lower=0.2, quote_threshold=0.99)
    report = report_of(in_use, "here", judged(0.6, -0.2), 0, COSTS, 0)
    assert (report.recommended.upper, report.recommended.lower) == (0.3, 0.2)
    assert report.recommended.sure == report.fitted.sure


def test_an_evaluator_that_does_not_read_has_no_threshold_of_quotations() -> None:
    report = report_of(FakeEvaluator(upper=0.95), "here", judged(0.6, -0.2), 0, COSTS, 0)
    assert report.recommended.sure is report.sure_saving is None
    assert report.calibration.quote is None


def test_a_wrong_answer_that_costs_more_raises_the_threshold() -> None:
    rows = judged(0.6, -0.2)
    for number in range(0, 20, 2):
        rows[number] = rows[number]._replace(right=False, quoted=0.805 + number / 1000)
    dear = report_of(FakeReadingEvaluator(), "here", rows, 0, COSTS, 0).cheapest.sure
    cheap_costs = Costs(wrong=0.1, needless=1, discarded=2)
    cheap = report_of(FakeReadingEvaluator(), "here", rows, 0, cheap_costs, 0).cheapest.sure
    assert dear is not None
    assert cheap is not None
    assert cheap < 0.81
    assert dear > 0.823


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(TrainingError, match="5 questions with an answer"):
        report_of(FakeReadingEvaluator(), "here", judged(0.6, -0.2)[:10], 0, COSTS, 0)


def test_a_mixture_counts_the_questions_of_each_kind() -> None:
    assert Mixture().counts(150) == (102, 30, 18)
    assert Mixture(1, 1, 0).counts(40) == (20, 20, 0)
    with pytest.raises(TrainingError, match="38 would have an answer"):
        Mixture(95, 5, 0).counts(40)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentIndex]:
    folder = tmp_path_factory.mktemp("pools")
    (folder / "pools.md").write_text(PAGE)
    with DocumentIndex(folder / "index", packaged_encoder()) as index:
        index_paths([folder / "pools.md"], index)
        yield index


def asked(index: DocumentIndex, **changes: str) -> MadeQuestion:
    source = next(str(chunk.metadata["source"]) for chunk in index.stored())
    made = MadeQuestion("What is the default size?", "answered", source, "", SENTENCE)
    return made._replace(**changes)  # type: ignore[arg-type]


def test_a_right_quotation_is_of_the_section_and_holds_the_sentence(index: DocumentIndex) -> None:
    reader = FakeReadingEvaluator(0.9, SENTENCE)
    found = judge(reader, index, asked(index))
    assert found
    assert found.right
    assert found.quoted > 0.9
    assert set(found.scores) == {0.9}
    other = judge(reader, index, asked(index, sentence="Lifeguards are paid by the town."))
    assert other
    assert not other.right


def test_the_section_of_a_near_question_is_never_read(index: DocumentIndex) -> None:
    reader = FakeReadingEvaluator(0.9, SENTENCE)
    made = asked(index, kind="near", section="Lifeguards", sentence="")
    found = judge(reader, index, made)
    assert found
    texts = [passage.text for call in reader.read_passages for passage in call]
    assert texts
    assert not any("Lifeguards watch" in text for text in texts)
    assert not found.right
    assert found.set.ideal == "incorrect"


def test_questions_that_are_not_what_they_should_be_are_left_out(index: DocumentIndex) -> None:
    reader = FakeReadingEvaluator(0.9, SENTENCE)
    assert judge(reader, index, asked(index, source="elsewhere.md")) is None
    assert judge(reader, index, asked(index, source="elsewhere.md", kind="near")) is None


def test_scores_alone_are_judged_too(index: DocumentIndex) -> None:
    found = judge(FakeEvaluator(0.4), index, asked(index))
    assert found
    assert set(found.scores) == {0.4}
    assert not found.right
