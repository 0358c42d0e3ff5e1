"""Quality of scores, and calibration from files to a report and the entry of a card."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.correction.action import decide
from crag.errors import CragError
from crag.papers.evaluator.calibrate import FEWEST, Aim, Report, calibrate, fit
from crag.papers.evaluator.evidence import JudgedSet, confusion, quality, top1
from crag.papers.evaluator.pairs import Pair
from crag.state import ACTIONS
from crag.testing import FakeEvaluator
from tests.trained import written

TEXTS = 5
Made = tuple[Path, FakeEvaluator]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    """Write labelled pairs and an evaluator that knows `telling` of the labels."""

    def made(questions: int = 120, telling: float = 1.0, shifted: float = 0.0) -> Made:
        rng = np.random.default_rng(7)
        answerable = rng.random(questions) < 0.8
        labels = (rng.random((questions, TEXTS)) < 0.4) & answerable[:, None]
        noise = rng.normal(scale=0.25, size=labels.shape)
        scores = np.clip(telling * 0.8 * (labels - 0.5) + noise + shifted, -1, 1)
        known, rows = {}, []
        for (q, t), label in np.ndenumerate(labels):
            text = f"[{q}-{t}] words"
            known[f"T // {text}"] = float(scores[q, t])
            row = {"question": f"question {q}", "title": "T", "text": text, "label": int(label)}
            rows.append(row)
        path = written(tmp_path / "pairs.jsonl", rows)
        return path, FakeEvaluator(lambda _, text: known[text])

    return made


@pytest.fixture
def report(make: Callable[..., Made]) -> Report:
    path, evaluator = make()
    return calibrate(evaluator, [path])


def test_the_report_is_of_one_piece(report: Report) -> None:
    upper, lower = report.calibration.upper, report.calibration.lower
    assert -1 < lower <= upper < 1
    assert report.precision.low < 0.92 <= report.precision.value < report.precision.high
    assert report.discarded.value <= 0.02
    assert sum(sum(row.values()) for row in report.confusion.values()) == 120
    assert report.metrics["auc"] > 0.9
    assert report.calibration.questions == 120
    assert report.calibration.data[0].pairs == 600


def test_shuffled_labels_calibrate_nothing(make: Callable[..., Made]) -> None:
    path, evaluator = make(telling=0.0)
    with pytest.raises(CragError, match=r"cannot calibrate: .*\(AUC\s0\.5"):
        calibrate(evaluator, [path])


@pytest.mark.parametrize(("questions", "count"), [(5, "[0-5] of 5"), (11, r"\d of 11")])
def test_few_examples_are_refused_before_anything_is_scored(
    make: Callable[..., Made], questions: int, count: str
) -> None:
    path, evaluator = make(questions=questions)
    with pytest.raises(CragError, match=f"{count} questions .* at least 10 are needed"):
        calibrate(evaluator, [path])
    assert evaluator.calls == []


def sets_with_actions(path: Path, last: str | None = "correct") -> Path:
    """Write 60 sets, a third of each action; ambiguous ones hold a weak text labelled 0."""
    rows: list[dict[str, object]] = []
    for n in range(60):
        action = ("correct", "ambiguous", "incorrect")[n % 3]
        documents = [
            {"text": f"{action} {n}", "label": int(action == "correct")},
            {"text": f"other {n}", "label": 0},
        ]
        rows.append({"question": f"q{n}", "action": action, "documents": documents})
    rows[0]["action"] = last
    return written(path, rows)


def test_the_data_may_say_the_ideal_action(tmp_path: Path) -> None:
    path = sets_with_actions(tmp_path / "sets.jsonl")
    evaluator = FakeEvaluator({"incorrect": -0.8, "correct": 0.8, "ambiguous": 0.1})
    found = calibrate(evaluator, [path], aim=Aim(discarded=0))
    assert found.calibration.thresholds == pytest.approx({"upper": 0.45, "lower": -0.35})
    assert all(row[action] == 20 for action, row in found.confusion.items())


def test_of_texts_that_tie_for_the_best_all_must_be_relevant(make: Callable[..., Made]) -> None:
    path, evaluator = make()
    coarse = FakeEvaluator(lambda q, text: float(np.sign(evaluator.score(q, [text])[0])))
    with pytest.raises(CragError, match="no upper threshold"):
        calibrate(coarse, [path])


SETS = st.lists(
    st.builds(
        lambda best, usable, right, ideal: JudgedSet(best / 8, usable and right, usable, ideal),
        st.integers(-8, 8),
        st.booleans(),
        st.booleans(),
        st.sampled_from(ACTIONS),
    ),
    min_size=1,
    max_size=40,
)
SHARES = st.sampled_from([0.0, 0.02, 0.1, 0.25, 0.5, 0.9])


def every_threshold(sets: list[JudgedSet]) -> list[float]:
    scores = sorted({one.best for one in sets})
    return [scores[0] - 1, *((a + b) / 2 for a, b in pairwise(scores)), scores[-1] + 1]


def at_or_above(sets: list[JudgedSet], threshold: float) -> list[JudgedSet]:
    return [one for one in sets if one.best >= threshold]


def precise(sets: list[JudgedSet], threshold: float, precision: float) -> bool:
    judged = at_or_above(sets, threshold)
    right = sum(one.right for one in judged)
    return len(judged) >= FEWEST and right >= precision * len(judged) - 1e-9


def discarded(sets: list[JudgedSet], threshold: float) -> int:
    return sum(one.usable and one.best < threshold for one in sets)


def by_search(sets: list[JudgedSet], aim: Aim) -> tuple[float, float] | None:
    """Read the two aims word by word, over all thresholds."""
    places = every_threshold(sets)
    uppers = [t for t in places if precise(sets, t, aim.precision)]
    if not uppers:
        return None
    allowed = aim.discarded * sum(one.usable for one in sets) + 1e-9
    upper, lower = min(uppers), max(t for t in places if discarded(sets, t) <= allowed)
    if lower <= upper:
        return upper, lower

    def wrong(threshold: float) -> int:
        judged = at_or_above(sets, threshold)
        return sum(not one.right for one in judged) + discarded(sets, threshold)

    one = min((t for t in uppers if t <= lower), key=wrong)
    return one, one


def actions(sets: list[JudgedSet], upper: float, lower: float) -> list[str]:
    return [decide([one.best], upper, lower) for one in sets]


@settings(deadline=None)
@given(SETS, st.sampled_from([0.3, 0.5, 0.75, 0.92, 1.0]), SHARES)
def test_shares_are_fitted_as_a_search_through_everything_does(
    sets: list[JudgedSet], precision: float, share: float
) -> None:
    aim = Aim(precision=precision, discarded=share)
    expected = by_search(sets, aim)
    if expected is None:
        with pytest.raises(CragError, match=r"no upper threshold|too few"):
            fit(sets, aim)
        return
    found = fit(sets, aim)
    assert found["lower"] <= found["upper"]
    assert actions(sets, **found) == actions(sets, *expected)


def test_an_aim_out_of_reach_names_the_best_precision_and_its_questions() -> None:
    sets = [JudgedSet(n / 100, n % 4 != 0, usable=True, ideal="correct") for n in range(100)]
    with pytest.raises(CragError, match=r"0\.99 .*best is 0\.818 of 11 questions, from 0\.885"):
        fit(sets, Aim(precision=0.99))
    with pytest.raises(CragError, match="5 questions are too few"):
        fit(sets[:5], Aim())


LABELLED = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=1, max_size=30)


def pair(question: str, label: float, text: str = "text") -> Pair:
    return Pair(question, "", text, label)


@settings(deadline=None)
@given(LABELLED)
def test_quality_is_what_counting_couples_and_thresholds_finds(
    texts: list[tuple[bool, int]],
) -> None:
    positives, scores = zip(*texts, strict=True)
    pairs = [pair("q", float(one), str(number)) for number, one in enumerate(positives)]
    found = quality(pairs, scores)

    right = [(score >= 0) == positive for positive, score in texts]
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))
    ups = [score for positive, score in texts if positive]
    downs = [score for positive, score in texts if not positive]
    couples = [(up > down) + (up == down) / 2 for up in ups for down in downs]
    assert ("auc" in found) == bool(couples)
    if couples:
        assert found["auc"] == pytest.approx(sum(couples) / len(couples))


def test_top1_counts_questions_with_both_classes_and_shares_ties() -> None:
    pairs = [
        pair("won", 1), pair("won", 0, "b"),
        pair("tied", 0.5), pair("tied", 0, "b"),
        pair("lost", 1), pair("lost", 0.2, "b"),
        pair("no relevant text", 0), pair("no relevant text", 0, "b"),
    ]  # fmt: skip
    assert top1(pairs, [0.9, 0.1, 0.5, 0.5, 0.1, 0.9, 1, 1]) == pytest.approx(1.5 / 3)
    assert top1(pairs[6:], [1, 1]) is None


def test_confusion_counts_ideal_and_chosen_actions() -> None:
    table = confusion(["correct", "incorrect", "incorrect"], ["correct", "correct", "incorrect"])
    assert table["incorrect"] == {"correct": 1, "ambiguous": 0, "incorrect": 1}
    assert sum(map(sum, (row.values() for row in table.values()))) == 3
