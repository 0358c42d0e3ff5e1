"""`crag train`, with a tiny BERT and the tiny T5."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crag.evaluators import load_evaluator
from crag.models.model_card import read_card
from crag.papers.cli import app, main
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.trainer import WORK
from tests.trained import TINY_T5, some_pairs, tiny_bert

runner = CliRunner()
TRAIN, OTHER = some_pairs(160)[:60], some_pairs(160)[60:100]


def written(path: Path, pairs: list[Pair]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs))
    return path


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "train.jsonl", TRAIN)


@pytest.fixture
def small(bert: Path) -> list[str]:
    values = {
        "base": bert, "max_length": 48, "learning_rate": 0.003, "batch_size": 8,
        "evaluations": 0,
    }  # fmt: skip
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def call(*arguments: object) -> str:
    given = ["train", *(str(argument) for argument in arguments)]
    result = runner.invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_pairs_become_an_evaluator(data: Path, small: list[str], tmp_path: Path) -> None:
    output, pictures = tmp_path / "made", tmp_path / "pictures"
    shown = call(
        data, "--output", output, "--licence", "CC0-1.0", "--held-out", 0.25, *small,
        "--set", "evaluations=1", "--set", "epochs=2", "--pictures", pictures, "--leaks", "drop",
    )  # fmt: skip
    assert "held out" in shown
    assert f"crag calibrate DATA --evaluator {output} --write" in shown
    assert (pictures / "training.png").read_bytes().startswith(b"\x89PNG")
    card = read_card(output)
    assert card is not None
    assert (card.kind, card.max_length) == ("cross_encoder", 48)
    (file,) = card.data
    assert (file.name, file.pairs, file.positives) == ("train.jsonl", 60, 30)
    assert file.licence == "CC0-1.0"
    assert card.recipe["epochs"] == 2
    assert card.recipe["seed"] == 0
    assert set(card.metrics) == {"held out"}
    assert 0 <= card.metrics["held out"]["auc"] <= 1
    assert not (output / WORK).exists()
    scores = load_evaluator(str(output)).score(OTHER[0].question, [OTHER[0].text, OTHER[1].text])
    assert scores[0] > scores[1]


@pytest.mark.nightly
def test_a_t5_is_trained_as_in_the_paper(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "made"
    given = ["--preset", "paper", "--set", f"base={TINY_T5}", "--set", "epochs=1"]
    shown = call(data, "--output", output, "--held-out", 0, *given)
    assert "held out" not in shown
    card = read_card(output)
    assert card is not None
    assert (card.kind, card.max_length, card.metrics) == ("t5", 512, {})
    assert len(load_evaluator(str(output)).score("Who?", ["A text.", ""])) == 2


def test_a_leak_is_refused_before_anything_is_written(
    data: Path,
    small: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dev = written(tmp_path / "dev.jsonl", TRAIN[:4])
    arguments = ["crag", "train", data, "--output", tmp_path / "made", "--dev", dev, *small]
    monkeypatch.setattr(sys, "argv", [str(argument) for argument in arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the same question is in training and development data" in said
    assert "--leaks drop" in said
    assert not (tmp_path / "made").exists()
