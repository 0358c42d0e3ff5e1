"""How many quotations are right from which score on: judged by hand, and by gold answers."""

from pathlib import Path

from crag.papers.training.records import read_objects
from tests.papers.experiments.measurements import measurement

JUDGED = measurement("judged_quotations")
SURE = measurement("sure_quotations")


def test_a_quotation_is_judged_by_its_words(tmp_path: Path) -> None:
    (tmp_path / "harbour").mkdir()
    text = "The harbour of Quellmoor was dug in 1731."
    (tmp_path / "harbour" / "harbour.txt").write_text(text, encoding="utf-8")
    asked = "When was the harbour of Quellmoor dug?"
    for judged, verdict in (({JUDGED.key(text): "right"}, "right"), ({}, "not judged")):
        rows = [{"package": "harbour", "question": asked, "judged": judged}]
        (found,) = JUDGED.quoted(rows, tmp_path, tmp_path / f"kept {verdict}")
        assert (found.text, found.verdict) == (text, verdict)
        place = JUDGED.VERDICTS.index(verdict)
        assert JUDGED.counted([found], found.score)[place] == 1
        assert not any(JUDGED.counted([found], found.score + 0.01))


def test_every_judgement_is_one_that_is_counted() -> None:
    rows = list(read_objects(JUDGED.ROWS))
    assert len({(row["package"], row["question"]) for row in rows}) == len(rows) > 100
    judgements = [judgement for row in rows for judgement in row["judged"].items()]
    assert {verdict for _, verdict in judgements} == set(JUDGED.VERDICTS[:-1])
    assert all(len(key) == len(JUDGED.key("")) for key, _ in judgements)


def test_right_wrong_and_false_answers_are_counted_from_a_score_on() -> None:
    said = [
        SURE.Said(0.9, right=True, answerable=True), SURE.Said(0.8, right=False, answerable=True),
        SURE.Said(0.7, right=False, answerable=False), SURE.Said(0.1, right=True, answerable=True),
    ]  # fmt: skip
    counts = [SURE.counted(said, threshold) for threshold in (0.85, 0.75, 0.5, 0.0)]
    assert counts == ["1, 0, 0", "1, 1, 0", "1, 1, 1", "2, 1, 1"]
