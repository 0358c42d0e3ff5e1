"""Evaluators by name, by class and by folder."""

from pathlib import Path

import pytest

from crag.errors import CragError, EvaluatorError
from crag.evaluators import ChatEvaluator, ReaderEvaluator, load_evaluator
from crag.papers.files import write_card
from crag.parts import Evaluator
from crag.testing import FakeChatModel, FakeEvaluator

KINDS = {"default": ReaderEvaluator, "reader": ReaderEvaluator, "chat": ChatEvaluator}


@pytest.mark.parametrize("name", KINDS)
def test_every_name_is_an_evaluator(name: str) -> None:
    evaluator = load_evaluator(name, model=FakeChatModel())
    assert type(evaluator) is KINDS[name]
    assert isinstance(evaluator, Evaluator)


def test_a_chat_evaluator_needs_a_model() -> None:
    with pytest.raises(EvaluatorError, match="asks a chat model: set OPENAI_API_KEY"):
        load_evaluator("chat")


class Mine(FakeEvaluator):
    """An evaluator of the user's own."""


class NeedsMore(FakeEvaluator):
    """An evaluator that cannot be made of nothing."""

    def __init__(self, needed: str) -> None:
        super().__init__(float(needed))


def test_an_evaluator_of_ones_own_is_named_by_its_class() -> None:
    assert isinstance(load_evaluator(f"{__name__}:Mine"), Mine)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_module:Mine", "No module named"),
        (f"{__name__}:Yours", "cannot be imported"),
        (f"{__name__}:NeedsMore", "missing 1 required positional argument"),
        ("pathlib:Path", "it must be, or make, a Evaluator"),
    ],
)
def test_a_class_that_is_none_is_told(name: str, problem: str) -> None:
    with pytest.raises(CragError, match=problem):
        load_evaluator(name)


def test_unknown_names_and_folders_without_an_evaluator(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"no evaluator or folder 'redaer'.*did you mean"):
        load_evaluator("redaer")
    with pytest.raises(EvaluatorError, match="no evaluator or folder"):
        load_evaluator(str(tmp_path / "missing"))
    for broken in (None, "{", "[]"):
        if broken:
            (tmp_path / "config.json").write_text(broken)
        with pytest.raises(EvaluatorError, match=r"config\.json cannot be read.*crag train"):
            load_evaluator(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (None, "holds no card.json"),
        ({"kind": "cross_encoder"}, "holds a cross_encoder for 320 tokens"),
        ({"max_length": 128}, "at least 256"),
    ],
)
def test_a_folder_with_a_graph_and_another_card_is_refused(
    tmp_path: Path, changes: dict[str, object] | None, problem: str
) -> None:
    (tmp_path / "model.onnx").touch()
    if changes:
        write_card(tmp_path, ReaderEvaluator.packaged().card.model_copy(update=changes))
    with pytest.raises(EvaluatorError, match=problem):
        load_evaluator(str(tmp_path))
