"""Models run one input at a time, whole and as their cards say."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pydantic import ValidationError

import crag
from crag.errors import EvaluatorError
from crag.models.encoder import SentenceEncoder, packaged_encoder
from crag.models.model import MODEL, TOKENIZER, Input, Model, ModelFiles
from crag.models.model_card import CARD, Calibration, DataFile, ModelCard, read_card
from crag.papers.files import write_card

PACKAGED = Path(crag.__file__).parent / "models" / "crag_minilm_l6_v2"
BARN = [0.074476, 0.012941, 0.049028, -0.014185]
"""How the vector of its question begins, on any processor."""
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
    folder = shutil.copytree(PACKAGED, tmp_path / "mine")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] if damage == "cut" else content + b" ")
    if damage == "missing":
        (folder / name).unlink()
    problem = "cannot be read" if damage == "missing" else "not the file that the card names"
    held = ModelFiles(folder, read_card(folder).files, EvaluatorError)  # type: ignore[union-attr]
    model = Model(held)
    use = {MODEL: lambda: model.run(INPUTS[:1]), TOKENIZER: lambda: model.encode("a")}[name]
    with pytest.raises(EvaluatorError, match=f"{name}: .*{problem}.*install crag again"):
        use()


def test_a_character_that_is_no_unicode_is_a_question_mark() -> None:
    model = Model(ModelFiles(PACKAGED, {}, EvaluatorError))
    assert model.encode("a \ud83d b").ids == model.encode("a ? b").ids
    assert len(Model(ModelFiles(PACKAGED, {}, EvaluatorError), 16).encode("a " * 99).ids) == 16
    assert np.asarray(model.encode("").ids).shape == (2,)


def test_every_processor_makes_the_same_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    question = "When is the barn let?"
    made = [packaged_encoder().embed_query(question)]
    monkeypatch.setattr("crag.models.model._has_vnni", lambda: False)
    made.append(SentenceEncoder().embed_query(question))
    for vector in made:
        assert np.allclose(vector[:4], BARN, atol=1e-5)  # Sums of 16 bits are wrong by 0.01.


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


TEXTS = ["An engine computes.", "", "Cats sleep. " * 200, "A machine calculates.", "naïve 東京 🙂"]


def test_vectors() -> None:
    encoder = packaged_encoder()
    vectors = np.asarray(encoder.embed_documents(TEXTS))
    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    question = np.asarray(encoder.embed_query("What does the machine do?"))
    assert vectors[3] @ question > vectors[2] @ question
    assert encoder.embed_documents([]) == []


def test_a_vector_does_not_depend_on_what_stands_beside_its_text() -> None:
    encoder = SentenceEncoder()
    together = encoder.embed_documents(TEXTS)
    assert [encoder.embed_query(text) for text in TEXTS] == together
    assert encoder.embed_documents(TEXTS[::-1]) == together[::-1]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(encoder.embed_query, TEXTS * 3)) == together * 3
