"""The evaluator that ships with the package: its card, its contract, and what it can do."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from langchain_core.documents import Document

from crag.correction.scoring import with_title
from crag.evaluators import CrossEncoderEvaluator
from crag.models.minilm import WEIGHTS_SHA256
from crag.nodes.grade import Grade
from crag.nodes.refine import Refine
from crag.papers.training.metrics import quality
from crag.papers.training.pairs import by_question, read_pairs
from crag.parts import Passage
from crag.settings import Settings
from crag.state import State

MEBIBYTE = 2**20
EVALUATOR = CrossEncoderEvaluator.packaged()
TEXTS = [
    "Ada Lovelace // Ada Lovelace was born in London on 10 December 1815.",
    "Ada Lovelace // She was taught mathematics by Mary Somerville and Augustus De Morgan.",
    "London // London is the capital of England, on the River Thames.",
    "Bananas ripen faster in a paper bag, because it holds the ethylene.",
]


def test_the_card_says_what_it_is() -> None:
    card = EVALUATOR.card
    assert card is not None
    assert card.base_sha256 == WEIGHTS_SHA256
    assert card.calibration is not None
    assert -1 < card.calibration.lower < card.calibration.upper < 1
    assert len(card.calibration.quantiles) == 21
    assert card.data
    assert all(file.licence for file in card.data)
    assert card.limits


def test_the_artefact_is_small() -> None:
    folder = Path(str(files("crag.evaluators").joinpath("cross_encoder")))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 25 * MEBIBYTE


def test_the_answer_before_the_entity_before_the_rest() -> None:
    scores = EVALUATOR.score("In what city was Ada Lovelace born?", TEXTS)
    answer, entity, *others = scores
    assert answer > EVALUATOR.thresholds["upper"] > entity > max(others)
    assert max(others) < EVALUATOR.thresholds["lower"]


@pytest.mark.parametrize("titles", ["every_strip", "passage", "none"])
def test_a_comment_in_an_untitled_document_does_not_make_its_code_a_title(titles: Any) -> None:
    question, code = "In what city was Ada Lovelace born?", "Ada Lovelace // born somewhere else"
    state = State(question=question, documents=[Document(code)])
    chosen = Settings(titles=titles)
    (expected,) = EVALUATOR.score_passages(question, [Passage("", code)])
    assert EVALUATOR.score(question, [code])[0] > expected + 0.1
    assert Grade(EVALUATOR).run(state, chosen)["scores"] == [expected]
    (strip,) = Refine(EVALUATOR).run(state, chosen)["internal"]
    assert (strip["text"], strip["score"]) == (code, expected)


def test_very_long_texts() -> None:
    long = " ".join(["word"] * 100_000)
    cut = " ".join(["word"] * 400)
    assert EVALUATOR.score("a word?", [long]) == pytest.approx(
        EVALUATOR.score("a word?", [cut]), abs=1e-5
    )


@pytest.mark.data
@pytest.mark.parametrize("name", ["evaluator/dev_popqa_retr", "qa/popqa_dev"])
def test_the_card_holds_on_development_data(data: Path, name: str) -> None:
    """On every fifth question; `make test-data PROFILE=thorough` takes all, compared exactly."""
    all_of_them = settings.get_current_profile_name() == "thorough"
    grouped = by_question(read_pairs(data / f"{name}.jsonl"))
    questions = list(grouped)[:: 1 if all_of_them else 5]
    pairs = [pair for question in questions for pair in grouped[question]]
    scores = [
        score
        for question in questions
        for score in EVALUATOR.score(
            question, [with_title(pair.title, pair.text) for pair in grouped[question]]
        )
    ]
    assert EVALUATOR.card is not None
    found, said = quality(pairs, scores), EVALUATOR.card.metrics[Path(name).stem]
    names = set(said) if all_of_them else {"auc", "best_accuracy"}
    assert {one: found[one] for one in names} == pytest.approx(
        {one: said[one] for one in names}, abs=0.01 if all_of_them else 0.03
    ), json.dumps([found, said])
