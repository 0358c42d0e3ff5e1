"""The paper's evaluator, with a tiny T5 that transformers 4 saved."""

import json
import logging
import math
import os
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from crag.correction.scoring import joined
from crag.errors import EvaluatorError
from crag.evaluators.checkpoint import load_model, load_tokenizer
from crag.evaluators.t5 import PAPER, T5Evaluator
from crag.models.model_card import Calibration, ModelCard
from crag.papers.training.artefacts import write_card
from crag.parts import Evaluator, Passage
from crag.runtime.evaluator_calls import score_passages

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
EXPECTED = json.loads((TINY / "expected.json").read_text("utf-8"))
SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
QUESTION = "What is the capital of France?"
TEXTS = [
    "The capital of France is Paris.", "", "three short words", "Bees collect nectar. " * 60, "x",
    " \n", "Cats 😀😺", "東京は日本の首都です。", "Москва", "a </s> b", "<pad>", "<extra_id_0>",
]  # fmt: skip
CALIBRATION = Calibration(
    upper=0.4, lower=-0.6, aim="tests", questions=1, data=[], quantiles=[0.0] * 21
)
Copy = Callable[..., Path]


def close(scores: Any) -> Any:
    return pytest.approx(scores, abs=1e-5)


@cache
def tiny() -> T5Evaluator:
    return T5Evaluator(TINY)


@cache
def one_by_one() -> list[float]:
    return [tiny().score(QUESTION, [text])[0] for text in TEXTS]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Copy the checkpoint without some files, and with changes to config.json."""

    def make(*without: str, **config: Any) -> Path:
        for path in TINY.iterdir():
            if path.name not in without and path.is_file():
                (tmp_path / path.name).write_bytes(path.read_bytes())
        content = json.loads((TINY / "config.json").read_text()) | config
        (tmp_path / "config.json").write_text(json.dumps(content))
        return tmp_path

    return make


@pytest.mark.parametrize("compat", [None, "official"])
def test_the_scores_are_those_of_transformers_4(compat: Any) -> None:
    evaluator = T5Evaluator(TINY, compat=compat)
    scores = [evaluator.score(question, [text])[0] for question, text in EXPECTED["pairs"]]
    assert scores == close(EXPECTED["scores"])
    assert max(scores) > 1
    assert len({round(score, 3) for score in scores}) == len(scores)


def test_the_scores_are_those_of_a_plain_forward_pass() -> None:
    import torch

    model, tokenizer = load_model(TINY, "float32", torch.device("cpu")), load_tokenizer(TINY)
    for text in ("The capital of France is Paris.", "😀 слово " * 900):
        one = f"{QUESTION} [SEP] {text}"
        inputs = tokenizer(one, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            plain = model(**inputs).logits.item()
        assert tiny().score(QUESTION, [text]) == close([plain])


@pytest.mark.parametrize(
    "without", [(SAFETENSORS,), (PICKLE,), (PICKLE, "tokenizer.json"), (PICKLE, "spiece.model")]
)
def test_every_way_a_checkpoint_is_saved_gives_the_same(copy: Copy, without: Any) -> None:
    evaluator = T5Evaluator(copy(*without))
    evaluator.verify()
    assert evaluator.score(QUESTION, TEXTS) == close(one_by_one())


def test_with_nothing_but_what_the_official_folder_needs(copy: Copy) -> None:
    unneeded = ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]
    folder = copy(SAFETENSORS, "tokenizer.json", *unneeded)
    assert T5Evaluator(str(folder)).score(QUESTION, TEXTS) == close(one_by_one())


def test_weights_in_several_files(copy: Copy) -> None:
    import torch

    folder = copy(SAFETENSORS, PICKLE)
    model = load_model(TINY, "float32", torch.device("cpu"))
    model.save_pretrained(folder, max_shard_size="20KB")
    evaluator = T5Evaluator(folder)
    assert evaluator.score(QUESTION, TEXTS) == close(one_by_one())
    next(folder.glob("model-00002*")).unlink()
    with pytest.raises(EvaluatorError, match=r"model-00002.*is missing"):
        T5Evaluator(folder).verify()


def test_long_texts_are_cut_at_512_tokens(copy: Copy) -> None:
    words = "Whales hunt fish. " * 33_334
    beginning, whole = words[:3000], words
    assert tiny().score(QUESTION, [whole]) == close(tiny().score(QUESTION, [beginning]))
    assert tiny().score(QUESTION, [whole]) != close(tiny().score(QUESTION, [words[:300]]))
    folder = copy()
    write_card(folder, ModelCard(kind="t5", base="t5-large", max_length=64))
    shorter = T5Evaluator(folder)
    assert shorter.score(QUESTION, [whole]) == close(shorter.score(QUESTION, [words[:300]]))
    assert shorter.score(QUESTION, [whole]) != close(tiny().score(QUESTION, [whole]))


def test_many_long_texts_need_the_memory_of_one_batch() -> None:
    whole = "Whales hunt fish. " * 33_334
    tiny().score(QUESTION, ["a text"])
    tracemalloc.start()
    scores = tiny().score(QUESTION, [whole] * 64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scores == close([scores[0]] * 64)
    assert peak < 8 * len(whole)


@pytest.mark.parametrize("text", ["a</s> b c", "a b c </s>", "<pad> a", "</s></s>"])
def test_special_tokens_in_a_text_are_unknown_words(text: str) -> None:
    import torch

    model, tokenizer = load_model(TINY, "float32", torch.device("cpu")), load_tokenizer(TINY)
    inner = tokenizer(joined(QUESTION, text)).input_ids[:-1]
    assert {0, 1} & set(inner)
    row = [*(2 if piece in {0, 1} else piece for piece in inner), 1]
    with torch.inference_mode():
        plain = model(torch.tensor([row])).logits.item()
    assert tiny().score(QUESTION, [text, "another"])[0] == close(plain)


def test_empty_texts_do_not_load_it(tmp_path: Path) -> None:
    evaluator = T5Evaluator(tmp_path)
    assert evaluator.score(QUESTION, ["", " \t\n"]) == [-1.0, -1.0]
    assert evaluator.score(QUESTION, []) == []


def test_thresholds_given_then_calibrated_then_the_papers(copy: Copy) -> None:
    assert isinstance(tiny(), Evaluator)
    assert tiny().thresholds == PAPER == {"upper": 0.592, "lower": -0.995}
    folder = copy()
    write_card(folder, ModelCard(kind="t5", base="t5-large"))
    assert T5Evaluator(folder).thresholds == PAPER
    write_card(folder, ModelCard(kind="t5", base="t5-large", calibration=CALIBRATION))
    assert T5Evaluator(folder).thresholds == {"upper": 0.4, "lower": -0.6}
    given = T5Evaluator(folder, thresholds={"upper": 0.1, "lower": 0.0})
    assert given.thresholds == {"upper": 0.1, "lower": 0.0}


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float16"])
def test_other_types_of_numbers(dtype: Any) -> None:
    scores = T5Evaluator(TINY, dtype=dtype).score(QUESTION, TEXTS)
    assert scores == pytest.approx(one_by_one(), abs=0.1)


def test_nan_is_not_hidden(copy: Copy) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy(PICKLE)
    weights = load_file(folder / SAFETENSORS)
    weights["classification_head.out_proj.bias"].fill_(math.nan)
    save_file(weights, folder / SAFETENSORS, {"format": "pt"})
    evaluator = T5Evaluator(folder)
    assert math.isnan(evaluator.score(QUESTION, ["a text"])[0])
    scored = score_passages(evaluator, QUESTION, [Passage("", "a text")], node="grade")
    assert scored.scores == [-1.0]
    assert scored.events[0]["kind"] == "evaluator_failed"


def test_the_joined_text() -> None:
    assert joined("a?", "b // c") == "a? [SEP] b // c"


def test_it_says_what_it_loads(caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    with caplog.at_level(logging.INFO, "crag"):
        T5Evaluator(TINY, device="cpu").score(QUESTION, ["a text"])
    assert [record.message for record in caplog.records] == [
        f"loading the evaluator {TINY} onto cpu (0.00 GB)"
    ]
    assert capfd.readouterr() == ("", "")


class Code:
    """What a pickle can hold."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("was-run",)


def other_label(folder: Path) -> None:
    change_config(folder, id2label={"0": "no", "1": "yes"})


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def headless(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / SAFETENSORS)
    body = {name: value for name, value in weights.items() if "classification" not in name}
    save_file(body, folder / SAFETENSORS, {"format": "pt"})


def cut(name: str, to: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:to])

    return damage


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def with_card(folder: Path) -> None:
    write_card(folder, ModelCard(kind="cross_encoder", base="MiniLM"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without("config.json"), r"no config\.json.*Give the folder"),
        (cut("config.json", 9), r"config\.json cannot be read.*Copy"),
        (lambda f: (f / "config.json").write_text("[]"), r"no JSON object"),
        (lambda f: change_config(f, model_type="bert"), r"'bert'.*another folder"),
        (
            lambda f: change_config(f, architectures=["T5ForConditionalGeneration"]),
            r"no T5ForSequenceClassification .*T5ForConditionalGeneration",
        ),
        (other_label, r"2 outputs; the paper's evaluator has one"),
        (lambda f: change_config(f, id2label=None), r"2 outputs"),
        (without("spiece.model", "tokenizer.json"), r"no tokenizer\. Copy spiece\.model"),
        (without(SAFETENSORS, PICKLE), r"no weights \(model\.safetensors"),
        (cut(SAFETENSORS, 30_000), r"model\.safetensors is damaged or cut short"),
        (cut(SAFETENSORS, 0), r"model\.safetensors is damaged or cut short"),
        (lambda f: (f / SAFETENSORS).write_bytes(b"no tensors" * 9), r"damaged or cut short"),
        (headless, r"no classification head, so every score would be random.*take a checkpoint"),
        (with_card, r"its card says that it is a cross_encoder"),
        (lambda f: (f / "card.json").write_text("{}"), r"card .*cannot be used: kind"),
        (
            lambda f: (
                (f / (SAFETENSORS + ".index.json")).write_text("{}") and (f / SAFETENSORS).unlink()
            ),
            r"names no weights",
        ),
    ],
)
def test_what_is_wrong_shows_before_loading(copy: Copy, damage: Any, said: str) -> None:
    folder = copy()
    damage(folder)
    evaluator = T5Evaluator(folder)
    with pytest.raises(EvaluatorError, match=said) as caught:
        evaluator.verify()
    assert str(folder) in str(caught.value)
    with pytest.raises(EvaluatorError, match=said):
        evaluator.score(QUESTION, ["a text"])


def pickled(content: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import torch

        (folder / SAFETENSORS).unlink()
        torch.save(content, folder / PICKLE)

    return write


def without_head(folder: Path) -> None:
    import torch

    weights = torch.load(folder / PICKLE, weights_only=True)
    pickled({n: v for n, v in weights.items() if "classification" not in n})(folder)


def raw_pickle(folder: Path) -> None:
    (folder / SAFETENSORS).unlink()
    (folder / PICKLE).write_bytes(pickle.dumps({"shared.weight": Code()}, protocol=2))


def cut_pickle(to: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / SAFETENSORS).unlink()
        cut(PICKLE, to)(folder)

    return damage


def broken_pieces(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    cut("spiece.model", 2001)(folder)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (pickled({"shared.weight": Code()}), r"could run code, so it was not loaded\. Save"),
        (raw_pickle, r"could run code, so it was not loaded"),
        (pickled([1, 2]), r"weights cannot be loaded\. Copy them again"),
        (cut_pickle(30_000), r"weights cannot be loaded\. Copy them again"),
        (cut_pickle(0), r"weights cannot be loaded\. Copy them again.*EOFError"),
        (without_head, r"no classification head, so every score would be random"),
        (
            lambda f: change_config(f, num_layers=2),
            r"\d+ weights are missing, such as trans.*block",
        ),
        (lambda f: change_config(f, d_ff=64), r"weights cannot be loaded"),
        (broken_pieces, r"spiece\.model is damaged\. Copy it again"),
        (cut("tokenizer.json", 100), r"tokenizer cannot be read\. Copy it again"),
    ],
)
def test_what_is_wrong_shows_when_loading(
    copy: Copy, damage: Any, said: str, monkeypatch: Any, capfd: Any
) -> None:
    folder = copy()
    monkeypatch.chdir(folder)
    damage(folder)
    evaluator = T5Evaluator(folder)
    for _ in range(2):
        with pytest.raises(EvaluatorError, match=said) as caught:
            evaluator.score(QUESTION, ["a text"])
        assert str(folder) in str(caught.value)
    assert not (folder / "was-run").exists()
    assert capfd.readouterr() == ("", "")


def test_after_a_failure_the_next_call_tries_again(copy: Copy) -> None:
    folder = copy(SAFETENSORS, PICKLE)
    evaluator = T5Evaluator(folder)
    with pytest.raises(EvaluatorError, match="no weights"):
        evaluator.score(QUESTION, TEXTS)
    (folder / SAFETENSORS).write_bytes((TINY / SAFETENSORS).read_bytes())
    assert evaluator.score(QUESTION, TEXTS) == close(one_by_one())


@pytest.mark.parametrize("place", ["missing", "./a/b", "/a/b", Path("a/b")])
def test_a_missing_folder(place: Any) -> None:
    for call in (T5Evaluator(place).verify, lambda: T5Evaluator(place).score("q", ["a b"])):
        with pytest.raises(EvaluatorError, match=r"no such folder\. Give the folder"):
            call()


@pytest.mark.parametrize("device", ["tpu9", "cuda:99", "meta", ""])
def test_an_unknown_device(device: str) -> None:
    evaluator = T5Evaluator(TINY, device=device)
    for call in (evaluator.verify, lambda: evaluator.score("q", ["a b"])):
        with pytest.raises(EvaluatorError, match=rf"no device '{device}'.*there are: cpu"):
            call()


def test_options_that_make_no_sense() -> None:
    with pytest.raises(EvaluatorError, match="batch_size cannot be 0: at least 1"):
        T5Evaluator(TINY, batch_size=0)
    with pytest.raises(EvaluatorError, match=r"thresholds cannot be .*lower <= upper"):
        T5Evaluator(TINY, thresholds={"upper": 0.0, "lower": 0.1})


def test_a_model_that_cannot_be_had() -> None:
    evaluator = T5Evaluator("nobody/no-such-model")
    evaluator.verify()
    with pytest.raises(EvaluatorError, match=r"Hugging Face hub\. Check the name"):
        evaluator.score("a", ["b"])


@pytest.mark.parametrize("safe", [True, False])
def test_a_model_of_the_hub_brings_pickles_only_where_it_has_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: bool
) -> None:
    hub = [path for path in TINY.iterdir() if path.is_file()]
    hub = [path for path in hub if safe or path.name != SAFETENSORS]

    def download(_: str, *, revision: str | None, allow_patterns: list[str] | str) -> str:
        assert revision == "v1"
        patterns = [allow_patterns] if isinstance(allow_patterns, str) else allow_patterns
        for path in hub:
            if any(path.match(pattern) for pattern in patterns):
                (tmp_path / path.name).write_bytes(path.read_bytes())
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    evaluator = T5Evaluator("org/model", revision="v1")
    assert evaluator.score(QUESTION, TEXTS) == close(one_by_one())
    assert repr(evaluator) == "T5Evaluator('org/model')"
    assert (tmp_path / PICKLE).exists() is not safe


def test_a_sentencepiece_of_another_protobuf_names_the_one_to_install(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy("tokenizer.json")
    package = tmp_path / "site" / "sentencepiece"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sentencepiece_model_pb2.py").write_text(
        "from google.protobuf.runtime_version import VersionError\n"
        "raise VersionError('gencode 9 runtime 5')\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    for name in [one for one in sys.modules if one.partition(".")[0] == "sentencepiece"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EvaluatorError, match=r"pip install 'sentencepiece<0\.2\.3' \(gencode 9"):
        T5Evaluator(folder).score(QUESTION, ["a text"])
    monkeypatch.delitem(sys.modules, "sentencepiece", raising=False)
