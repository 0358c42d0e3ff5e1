"""One input a run: nothing depends on what stands beside it, in threads, forks and zip files."""

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import crag
from crag.errors import EncoderError, EvaluatorError
from crag.models.model import MODEL, TOKENIZER, Input, Model, ModelFiles, available_cores

PACKAGED = Path(crag.__file__).parent / "models" / "crag_minilm_l6_v2"
INPUTS = [Input([number, 2, 3], [0, 0, 1]) for number in range(50)]


def adding(folder: Path, *, most: int = 1000) -> ModelFiles:
    """Write a graph that returns the sum of tokens and types, and fails at a token above `most`."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["read"]),
        helper.make_node("Add", ["read", "token_type_ids"], ["sums"]),
    ]
    table = helper.make_tensor("table", TensorProto.INT64, [most], list(range(most)))
    names = ("input_ids", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n"]) for name in names]
    outputs = [helper.make_tensor_value_info("sums", TensorProto.INT64, ["n"])]
    graph = helper.make_graph(nodes, "adding", inputs, outputs, [table])
    opset = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), folder / MODEL)
    return ModelFiles(folder, {}, EvaluatorError)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(adding(tmp_path))


def sums(model: Model, inputs: list[Input]) -> list[list[int]]:
    return [result.tolist() for (result,) in model.run(inputs)]


EXPECTED = [[number, 2, 4] for number in range(50)]


def test_callers_at_once_each_get_their_own(model: Model) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda start: sums(model, INPUTS[start:]), range(40)))
    assert found == [EXPECTED[start:] for start in range(40)]


def test_no_more_runs_at_a_time_than_cores(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    most: list[int] = []

    class Slow:
        def run(self, _: None, feed: dict[str, Any]) -> list[Any]:
            running.append(1)
            most.append(len(running))
            time.sleep(0.002)
            running.pop()
            return [feed["input_ids"]]

    monkeypatch.setattr(model, "_load", Slow)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: model.run(INPUTS[:9]), range(8)))
    assert max(most) == available_cores()


def test_an_error_reaches_its_caller_alone_and_ends_its_work(model: Model) -> None:
    bad = [*INPUTS[:3], Input([5000], [0]), *INPUTS[3:]]
    with ThreadPoolExecutor(4) as pool:
        failing = [pool.submit(model.run, bad) for _ in range(4)]
        right = [pool.submit(sums, model, INPUTS) for _ in range(4)]
    assert all("indices element out of data bounds" in str(one.exception()) for one in failing)
    assert [one.result() for one in right] == [EXPECTED] * 4


FORKS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from crag.models.encoder import packaged_encoder
texts = ["one text", "another text, a longer one", "a third"] * 4
expected = packaged_encoder().embed_documents(texts)
busy = threading.Thread(target=packaged_encoder().embed_documents, args=(texts * 20,))
busy.start()
for _ in range(4):
    child = os.fork()
    if not child:
        os._exit(0 if packaged_encoder().embed_documents(texts) == expected else 3)
    print(os.waitpid(child, 0)[1])
busy.join()
"""


def test_a_process_that_forks_while_another_thread_computes_finds_its_models_whole() -> None:
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0\n" * 4, "")


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_file_is_told_by_its_name(tmp_path: Path, name: str, damage: str) -> None:
    from crag.models.encoder import SentenceEncoder

    folder = shutil.copytree(PACKAGED, tmp_path / "mine")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] if damage == "cut" else content + b" ")
    if damage == "missing":
        (folder / name).unlink()
    problem = "cannot be read" if damage == "missing" else "not the file that the card names"
    encoder = SentenceEncoder(folder)
    for use in (encoder.verify, lambda: encoder.embed_query("a")):
        with pytest.raises(EncoderError, match=f"{name}: .*{problem}.*install crag again"):
            use()


def test_a_character_that_is_no_unicode_is_a_question_mark() -> None:
    model = Model(ModelFiles(PACKAGED, {}, EvaluatorError))
    assert model.encode("a \ud83d b").ids == model.encode("a ? b").ids
    assert len(Model(ModelFiles(PACKAGED, {}, EvaluatorError), 16).encode("a " * 99).ids) == 16
    assert np.asarray(model.encode("").ids).shape == (2,)
