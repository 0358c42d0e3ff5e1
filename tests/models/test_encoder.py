"""The sentence encoder, with its real model."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from crag.errors import EncoderError
from crag.models.encoder import SentenceEncoder, packaged_encoder

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


def test_a_folder_with_an_encoder_is_another_one_of_its_own_name(tmp_path: Path) -> None:
    packaged = Path(str(files("crag.models").joinpath("crag_minilm_l6_v2")))
    encoder = SentenceEncoder(shutil.copytree(packaged, tmp_path / "mine"))
    assert encoder.name == str(tmp_path / "mine")
    assert encoder.embed_query("a") == packaged_encoder().embed_query("a")


def test_a_folder_with_something_else(tmp_path: Path) -> None:
    reader = Path(str(files("crag.models").joinpath("crag_reader_l6_v2")))
    with pytest.raises(EncoderError, match="it is a reader, which makes no vectors"):
        SentenceEncoder(reader)
    with pytest.raises(EncoderError, match=r"its card\.json cannot be used"):
        SentenceEncoder(tmp_path)
