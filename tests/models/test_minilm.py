"""The packaged encoder by ONNX Runtime; that it embeds as its original stands in test_encoder."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from crag.models.minilm import (
    WEIGHTS_SHA256,
    Input,
    MiniLM,
    States,
    official_weights,
    packaged_model,
    verify_files,
)

PAIRS = [("Who was Ada?", "Ada was a woman."), ("Why?", "Because of 東京 and 🙂. " * 20), ("", "x")]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM(official_weights(), max_length=32)


def test_each_file_has_the_hash_in_the_card_and_the_base_the_one_that_evaluators_name() -> None:
    card = json.loads((packaged_model() / "card.json").read_bytes())
    assert card["float32_sha256"] == WEIGHTS_SHA256
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= card["files"].keys()
    verify_files(packaged_model())


def test_the_weights_are_float32_and_shared_by_all_that_use_them() -> None:
    weights = official_weights()
    assert all(part is weights[name] for name, part in official_weights().items())
    assert {part.dtype for part in weights.values()} == {np.dtype(np.float32)}
    assert sum(part.size for part in weights.values()) == 22_713_216


def test_texts_and_pairs_are_cut_and_not_padded(model: MiniLM) -> None:
    encodings = model.encode([*PAIRS, "a single text"])
    assert [len(encoding) for encoding in encodings[1:]] == [32, 4, 5]
    assert encodings[0].tokens[0] == "[CLS]"
    assert encodings[0].type_ids.count(1) == 6  # "ada was a woman . [SEP]"
    assert set(encodings[3].type_ids) == {0}


def test_of_a_pair_the_longer_text_is_cut_first(model: MiniLM) -> None:
    (encoding,) = model.encode([("how old is it", "river " * 9999)])
    assert encoding.type_ids.count(0) == 6
    assert len(encoding) == 32
    (encoding,) = model.encode([("how " * 9999, "a river")])
    assert encoding.type_ids.count(1) == 3


def hidden(model: MiniLM, inputs: Sequence[Input]) -> list[States]:
    """Return the states of each input, in order."""
    states: dict[int, States] = {}
    for batch in model.hidden(model.encode(inputs)):
        states.update(zip(batch.indices, batch.results, strict=True))
    return [states[index] for index in range(len(inputs))]


def test_a_state_does_not_depend_on_the_batch(model: MiniLM) -> None:
    texts = ["one text", "another one", "and a third, a longer text"] * 5
    assert [states.shape for states in hidden(model, texts)[:3]] == [(4, 384), (4, 384), (9, 384)]
    for together, text in zip(hidden(model, texts), texts, strict=True):
        (alone,) = hidden(model, [text])
        assert together == pytest.approx(alone, abs=1e-5)


def test_changed_weights_change_the_states(model: MiniLM) -> None:
    name = "encoder.layer.5.output.dense.weight"
    other = MiniLM(official_weights() | {name: official_weights()[name] * 2}, max_length=32)
    assert not np.allclose(hidden(other, ["a text"]), hidden(model, ["a text"]), atol=1e-2)


DAMAGED = """
import sys
sys.path.insert(0, sys.argv[1])
from crag.errors import EncoderError
from crag.models.encoder import SentenceEncoder
for use in (SentenceEncoder().verify, lambda: SentenceEncoder().embed_query("a")):
    try:
        use()
    except EncoderError as error:
        print(error)
    else:
        print("no error")
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the installed package, whose files can be damaged."""
    source = packaged_model().parents[1]
    shutil.copytree(source, tmp_path / "crag", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "crag" / "models" / packaged_model().name


def errors(copied: Path) -> list[str]:
    """Return what verifying and embedding with a copy of the package say, a line each."""
    command = [sys.executable, "-c", DAMAGED, str(copied.parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_truncated_file_is_told_when_it_is_read(copied: Path) -> None:
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    for error in errors(copied):
        assert f"{weights} is damaged" in error
        assert "Install corrective-rag again" in error


def test_a_changed_file_is_told_by_its_hash(copied: Path) -> None:
    tokenizer = copied / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b"\n")
    verified, embedded = errors(copied)
    assert f"{tokenizer} is damaged (SHA-256" in verified
    assert embedded == "no error"


def test_a_missing_file_is_told(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    for error in errors(copied):
        assert "model.safetensors" in error
        assert "Install corrective-rag again" in error
