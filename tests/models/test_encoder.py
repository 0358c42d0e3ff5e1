"""The sentence encoder, with its real model."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest

from crag.errors import EncoderError
from crag.models.encoder import (
    DEFAULT_MODEL,
    SentenceEncoder,
    official_encoder,
    packaged_encoder,
    tuned_model,
)
from crag.models.minilm import MODEL, packaged_model, verify_files

TEXTS = ["An engine computes.", "", "Cats sleep. " * 200, "A machine calculates."]


def test_vectors() -> None:
    encoder = packaged_encoder()
    vectors = np.asarray(encoder.embed_documents(TEXTS))
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    question = np.asarray(encoder.embed_query("What does the machine do?"))
    assert vectors[3] @ question > vectors[2] @ question
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert encoder.embed_documents([text])[0] == pytest.approx(vector, abs=1e-5)


def test_nothing_to_embed() -> None:
    assert packaged_encoder().embed_documents([]) == []


def test_it_is_named_and_verified() -> None:
    assert packaged_encoder().name == DEFAULT_MODEL
    assert packaged_encoder() is packaged_encoder()
    packaged_encoder().verify()
    assert repr(packaged_encoder()) == f"SentenceEncoder('{DEFAULT_MODEL}')"


@pytest.mark.parametrize("model", [DEFAULT_MODEL, MODEL])
def test_it_embeds_as_sentence_transformers_does(model: str) -> None:
    texts = [*TEXTS, "naïve 東京 🙂", "word " * 3000]
    vectors = SentenceEncoder(model, device="cpu").embed_documents(texts)  # This asks for torch.
    plain = SentenceEncoder(model).embed_documents(texts)
    assert plain == pytest.approx(np.asarray(vectors), abs=2e-6)


def test_the_official_model_ships_too_under_its_own_name() -> None:
    assert official_encoder().name == MODEL
    assert official_encoder().languages == {"en"}
    official_encoder().verify()
    assert official_encoder().embed_query("a") != packaged_encoder().embed_query("a")


def test_it_finds_a_section_that_shares_no_word_with_the_question() -> None:
    question = "how long until a visitor's login cookie runs out"
    sections = ["Session expiry time in seconds. Defaults to 2 weeks.", "Visitors bake cookies."]
    right, wrong = packaged_encoder().embed_documents(sections)
    asked = np.asarray(packaged_encoder().embed_query(question))
    assert np.asarray(right) @ asked > np.asarray(wrong) @ asked


def test_a_damaged_change_is_told(tmp_path: Path) -> None:
    for file in tuned_model().iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:-1])
    (tmp_path / "card.json").write_bytes((tuned_model() / "card.json").read_bytes())
    with pytest.raises(EncoderError, match="is damaged"):
        verify_files(tmp_path)


def test_what_the_default_does_not_share_with_its_base_is_let_go_of() -> None:
    code = (
        "from crag.models.encoder import packaged_encoder; from crag.models.minilm import _in_use\n"
        "packaged_encoder().embed_query('a')\n"
        "print(*sorted({name.partition('.')[0] for name in _in_use}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "embeddings pooler\n"


def test_the_default_needs_no_torch_and_loads_quietly() -> None:
    code = (
        "import sys; from crag.models.encoder import packaged_encoder\n"
        "packaged_encoder().embed_query('a')"
        "; print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_threads_share_it() -> None:
    encoder = SentenceEncoder()
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(encoder.embed_query, TEXTS * 4))
    assert vectors[:4] == pytest.approx(np.asarray(vectors[4:8]), abs=1e-5)
    assert vectors[0] == pytest.approx(encoder.embed_documents(TEXTS[:1])[0], abs=1e-5)


def test_a_folder_with_the_model() -> None:
    encoder = SentenceEncoder(packaged_model())
    assert encoder.name == str(packaged_model())
    encoder.verify()
    assert encoder.embed_query("a") == pytest.approx(official_encoder().embed_query("a"), abs=1e-6)


def test_a_folder_with_an_evaluator(tmp_path: Path) -> None:
    with as_file(files("crag.evaluators") / "reader") as folder:
        encoder = SentenceEncoder(shutil.copytree(folder, tmp_path / "reader"))
    with pytest.raises(EncoderError, match="is damaged"):
        encoder.verify()
    with pytest.raises(EncoderError, match="no folder that crag train encoder wrote"):
        encoder.embed_query("a")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    encoder = SentenceEncoder(tmp_path)
    with pytest.raises(EncoderError, match="no weights"):
        encoder.verify()
    with pytest.raises(EncoderError, match="holds no model"):
        encoder.embed_query("a")


def test_a_model_that_cannot_be_had() -> None:
    with pytest.raises(EncoderError, match=r"Hugging Face hub\. Check the name"):
        SentenceEncoder("nobody/no-such-model").embed_query("a")
