"""The paper's evaluator, with a tiny T5 that transformers 4 saved."""

import json
import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crag.correction.strips import joined
from crag.errors import EvaluatorError
from crag.evaluators import T5Evaluator, load_evaluator
from crag.evaluators.t5 import PAPER
from crag.models.model_card import ModelCard
from crag.papers.files import write_card

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
EXPECTED = json.loads((TINY / "expected.json").read_text("utf-8"))
SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
QUESTION = "What is the capital of France?"
TEXTS = [
    "The capital of France is Paris.", "", "three short words", "Bees collect nectar. " * 60, "x",
    " \n", "Cats 😀😺", "東京は日本の首都です。", "Москва", "a </s> b", "<pad>", "<extra_id_0>",
]  # fmt: skip
Copy = Callable[..., Path]


def close(scores: Any) -> Any:
    return pytest.approx(scores, abs=1e-5)


@cache
def tiny() -> T5Evaluator:
    return T5Evaluator(TINY)


@cache
def one_by_one() -> list[float]:
    return [tiny().score(QUESTION, [text])[0] for text in TEXTS]


@cache
def plainly() -> tuple[Any, Any]:
    """Return the model and its tokenizer, loaded as anybody would."""
    from transformers import T5ForSequenceClassification, T5Tokenizer

    model = T5ForSequenceClassification.from_pretrained(TINY)
    return model.eval(), T5Tokenizer.from_pretrained(TINY)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Copy the checkpoint without some files, and with changes to config.json."""
    import torch
    from safetensors.torch import load_file

    def make(*without: str, **config: Any) -> Path:
        for path in TINY.iterdir():
            if path.name not in without and path.is_file():
                (tmp_path / path.name).write_bytes(path.read_bytes())
        if PICKLE not in without:
            torch.save(load_file(TINY / SAFETENSORS), tmp_path / PICKLE)
        content = json.loads((TINY / "config.json").read_text()) | config
        (tmp_path / "config.json").write_text(json.dumps(content))
        return tmp_path

    return make


def test_the_scores_are_those_of_transformers_4() -> None:
    scores = [tiny().score(question, [text])[0] for question, text in EXPECTED["pairs"]]
    assert scores == close(EXPECTED["scores"])
    assert max(scores) > 1
    assert tiny().thresholds == PAPER == {"upper": 0.592, "lower": -0.995}


@pytest.mark.parametrize(
    "without", [(SAFETENSORS,), (PICKLE,), (PICKLE, "tokenizer.json"), (PICKLE, "spiece.model")]
)
def test_every_way_a_checkpoint_is_saved_gives_the_same(copy: Copy, without: Any) -> None:
    evaluator = load_evaluator(str(copy(*without)))
    assert isinstance(evaluator, T5Evaluator)
    assert evaluator.score(QUESTION, TEXTS) == close(one_by_one())


def test_long_texts_are_cut_at_512_tokens_or_what_the_card_says(copy: Copy) -> None:
    words = "Whales hunt fish. " * 33_334
    beginning, whole = words[:3000], words
    assert tiny().score(QUESTION, [whole]) == close(tiny().score(QUESTION, [beginning]))
    assert tiny().score(QUESTION, [whole]) != close(tiny().score(QUESTION, [words[:300]]))
    folder = copy()
    write_card(folder, ModelCard(kind="t5", base="t5-large", max_length=64))
    shorter = T5Evaluator(folder)
    assert shorter.score(QUESTION, [whole]) == close(shorter.score(QUESTION, [words[:300]]))
    assert shorter.score(QUESTION, [whole]) != close(tiny().score(QUESTION, [whole]))


@pytest.mark.parametrize("text", ["a</s> b c", "a b c </s>", "<pad> a", "</s></s>"])
def test_special_tokens_in_a_text_are_unknown_words(text: str) -> None:
    import torch

    model, tokenizer = plainly()
    inner = tokenizer(joined(QUESTION, text)).input_ids[:-1]
    assert {0, 1} & set(inner)
    row = [*(2 if piece in {0, 1} else piece for piece in inner), 1]
    with torch.inference_mode():
        plain = model(torch.tensor([row])).logits.item()
    assert tiny().score(QUESTION, [text, "another"])[0] == close(plain)


class Code:
    """What a pickle can hold."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("was-run",)


def headless(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / SAFETENSORS)
    body = {name: value for name, value in weights.items() if "classification" not in name}
    save_file(body, folder / SAFETENSORS, {"format": "pt"})


def pickled(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / SAFETENSORS).unlink()
        (folder / PICKLE).write_bytes(content)

    return write


def cut(name: str, to: int, *without: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for other in without:
            (folder / other).unlink()
        (folder / name).write_bytes((folder / name).read_bytes()[:to])

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut(SAFETENSORS, 30_000), "cannot be loaded. Copy it again"),
        (cut(PICKLE, 30_000, SAFETENSORS), "cannot be loaded. Copy it again"),
        (cut("tokenizer.json", 100), "cannot be loaded. Copy it again"),
        (cut("config.json", 9999, "tokenizer.json", "spiece.model"), "tokenizer"),
        (headless, "it lacks 4 weights, such as classification_head"),
        (pickled(pickle.dumps({"shared.weight": Code()}, protocol=2)), "cannot be loaded"),
    ],
)
def test_what_is_damaged_is_refused_without_running_it(
    copy: Copy, damage: Any, said: str, monkeypatch: Any
) -> None:
    folder = copy()
    monkeypatch.chdir(folder)
    damage(folder)
    evaluator = load_evaluator(str(folder))
    for _ in "12":
        with pytest.raises(EvaluatorError, match=said) as caught:
            evaluator.score(QUESTION, ["a text"])
        assert str(folder) in str(caught.value)
    assert not (folder / "was-run").exists()
