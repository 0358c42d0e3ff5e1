"""The card of a model."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from crag.errors import EvaluatorError
from crag.models.model_card import (
    CARD,
    Calibration,
    DataFile,
    ModelCard,
    read_card,
)
from crag.papers.files import write_card

DATA = DataFile(name="é.jsonl", sha256="0" * 64, pairs=3, positives=1)
CALIBRATION = Calibration(upper=0.5, lower=-0.5, aim="precision", questions=2, data=[DATA])
FULL = ModelCard(
    kind="cross_encoder",
    base="base",
    max_length=32,
    data=[DATA],
    recipe={"epochs": 1, "dropout": None},
    metrics={"dev": {"auc": 0.9}},
    calibration=CALIBRATION,
    limits=["none known"],
    files={"model.onnx": "2" * 64},
)


@pytest.mark.parametrize("card", [FULL, ModelCard(kind="t5", base="b")])
def test_a_card_comes_back(tmp_path: Path, card: ModelCard) -> None:
    write_card(tmp_path, card)
    assert read_card(tmp_path) == card
    assert [path.name for path in tmp_path.iterdir()] == [CARD]
    assert (tmp_path / CARD).stat().st_mode & 0o777 == 0o644
    assert "\\u" not in (tmp_path / CARD).read_text("utf-8")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "Invalid JSON"),
        (b"[]", "the file: Input should be an object"),
        (b"\xff", "Invalid JSON"),
        (
            b'{"kind": "t6", "base": "b"}',
            "kind: Input should be 'encoder', 'reader', 'cross_encoder' or 't5'",
        ),
        (b'{"kind": "t5"}', "base: Field required"),
        (b'{"kind": "t5", "base": "b", "max_length": 1}', "max_length: Input should be greater"),
        (b'{"kind": "t5", "base": "b", "more": 1}', "more: Extra inputs"),
    ],
)
def test_a_bad_card_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / CARD).write_bytes(content)
    with pytest.raises(EvaluatorError, match=problem):
        read_card(tmp_path)


def test_thresholds_must_be_in_order(tmp_path: Path) -> None:
    text = json.dumps(FULL.model_dump(mode="json")).replace('"upper": 0.5', '"upper": -0.9')
    (tmp_path / CARD).write_text(text)
    with pytest.raises(EvaluatorError, match=r"calibration: .*lower -0.5 is above upper -0.9"):
        read_card(tmp_path)
    with pytest.raises(ValidationError):
        Calibration.model_validate({**CALIBRATION.model_dump(), "questions": 0})
