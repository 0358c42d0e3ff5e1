"""Evaluators by name and by folder."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.errors import EvaluatorError
from crag.evaluators import (
    NAMES,
    BatchChatEvaluator,
    ChatEvaluator,
    CosineEvaluator,
    ReaderEvaluator,
    T5Evaluator,
    load_evaluator,
)
from crag.models.encoder import packaged_encoder
from crag.papers.training.artefacts import write_card
from crag.parts import Evaluator
from crag.testing import FakeChatModel

TINY_T5 = Path(__file__).parents[1] / "fixtures/tiny_t5"
KINDS = {
    "default": ReaderEvaluator,
    "reader": ReaderEvaluator,
    "cosine": CosineEvaluator,
    "chat-direct": ChatEvaluator,
    "chat-chain-of-thought": ChatEvaluator,
    "chat-few-shot": ChatEvaluator,
    "chat-levels": ChatEvaluator,
    "chat-batch": BatchChatEvaluator,
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_an_evaluator(name: str) -> None:
    evaluator = load_evaluator(name, model=FakeChatModel(replies=["Yes"]))
    assert type(evaluator) is KINDS[name]
    assert isinstance(evaluator, Evaluator)


def test_the_cosine_is_that_of_the_packaged_encoder_unless_another_is_given() -> None:
    asked = "When does the pump stop?", ["It stops after 20 minutes."]
    expected = CosineEvaluator.fitted(packaged_encoder()).score(*asked)
    assert load_evaluator("cosine").score(*asked) == expected
    other = DeterministicFakeEmbedding(size=16)
    assert load_evaluator("cosine", other).score(*asked) != expected


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("chat-")])
def test_a_chat_evaluator_needs_a_model(name: str) -> None:
    with pytest.raises(EvaluatorError, match="asks a chat model: set OPENAI_API_KEY"):
        load_evaluator(name)


def test_a_folder_with_a_t5() -> None:
    assert isinstance(load_evaluator(str(TINY_T5)), T5Evaluator)
    scores = load_evaluator(str(TINY_T5), compat="official").score("a question", ["a text of five"])
    assert load_evaluator(str(TINY_T5)).score("a question", ["a text of five"]) == pytest.approx(
        scores, abs=1e-5
    )


def test_graphs_of_a_process_share_the_packaged_reader() -> None:
    assert load_evaluator("reader") is load_evaluator()


def test_unknown_names_and_folders_without_an_evaluator(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"no evaluator is called 'cosin'.*chat-batch"):
        load_evaluator("cosin")
    with pytest.raises(EvaluatorError, match="no such folder"):
        load_evaluator(str(tmp_path / "missing"))
    with pytest.raises(EvaluatorError, match=r"config.json cannot be read.*crag train"):
        load_evaluator(str(tmp_path))
    for broken in ("{", "[]"):
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(EvaluatorError, match=r"config\.json cannot be read"):
            load_evaluator(str(tmp_path))


def test_a_t5_with_two_outputs_is_refused_before_it_loads(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TINY_T5, tmp_path / "t5"))
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "no", "1": "yes"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EvaluatorError, match="it has 2 outputs"):
        load_evaluator(str(folder))


def test_a_folder_with_a_reader_is_one() -> None:
    evaluator = load_evaluator(str(files("crag.models").joinpath("crag_reader_l6_v2")))
    assert isinstance(evaluator, ReaderEvaluator)
    assert evaluator.thresholds == ReaderEvaluator.packaged().thresholds


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (None, "has no card.json"),
        ({"kind": "cross_encoder"}, "holds a cross_encoder for 320 tokens"),
        ({"max_length": 128}, "at least 256"),
    ],
)
def test_a_folder_with_a_graph_and_another_card_is_refused(
    tmp_path: Path, changes: dict[str, object] | None, problem: str
) -> None:
    (tmp_path / "model.onnx").touch()
    packaged = ReaderEvaluator.packaged().card
    if packaged and changes:
        write_card(tmp_path, packaged.model_copy(update=changes))
    with pytest.raises(EvaluatorError, match=problem):
        load_evaluator(str(tmp_path))
