"""Embedding models by name, against an OpenAI-compatible server on loopback."""

import shutil
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from crag.errors import EncoderError, MissingPackageError
from crag.factory.embeddings import TorchEncoder, load_embeddings
from crag.models.encoder import DEFAULT_MODEL, SentenceEncoder, packaged_encoder
from crag.text.language import languages_of
from tests.loopback import Loopback, serving
from tests.trained import tiny_bert


@pytest.fixture
def server() -> Iterator[Loopback]:
    vectors = [{"object": "embedding", "index": n, "embedding": [n, 1.0]} for n in range(2)]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    with serving({"object": "list", "model": "m", "data": vectors, "usage": usage}) as running:
        yield running


def test_a_server_of_ones_own_gets_texts_and_needs_no_key(server: Loopback) -> None:
    embeddings = load_embeddings("openai:bge-m3", base_url=f"{server.url}/v1")
    assert embeddings.embed_documents(["eins", "zwei"]) == [[0.0, 1.0], [1.0, 1.0]]
    assert embeddings.embed_query("drei") == [0.0, 1.0]
    assert [request["input"] for request in server.requests] == [["eins", "zwei"], ["drei"]]
    assert {request["model"] for request in server.requests} == {"bge-m3"}
    assert server.requests[0]["path"] == "/v1/embeddings"
    assert embeddings.embed_documents([]) == []
    assert getattr(embeddings, "name", None) == "openai:bge-m3"


def test_the_key_is_sent(server: Loopback) -> None:
    load_embeddings("openai:m", base_url=server.url, api_key="sk-one").embed_query("a")
    assert server.requests[0]["authorization"] == "Bearer sk-one"


def test_a_server_that_fails_is_named(server: Loopback) -> None:
    server.statuses = [401]
    with pytest.raises(EncoderError, match=r"encoder openai:m: its server failed: .*401"):
        load_embeddings("openai:m", base_url=server.url).embed_query("a")


def test_openai_needs_a_key() -> None:
    with pytest.raises(EncoderError, match="openai:m: set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        load_embeddings("openai:m")


def test_a_provider_needs_its_package() -> None:
    with pytest.raises(MissingPackageError, match="needs the package 'langchain-cohere'"):
        load_embeddings("cohere:embed")


def test_a_provider_of_langchain_embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"embeddings": [[0.25, 0.5]]}) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        embeddings = load_embeddings("ollama:tiny")
        assert embeddings.embed_query("eins") == [0.25, 0.5]
        assert getattr(embeddings, "name", None) == "ollama:tiny"


def test_a_name_and_a_folder_are_models_of_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    assert isinstance(load_embeddings(str(folder)), TorchEncoder)
    assert isinstance(load_embeddings("intfloat/multilingual-e5"), TorchEncoder)
    assert load_embeddings(DEFAULT_MODEL) is packaged_encoder()
    packaged = Path(str(files("crag.models").joinpath("crag_minilm_l6_v2")))
    mine = load_embeddings(str(shutil.copytree(packaged, tmp_path / "mine")))
    assert isinstance(mine, SentenceEncoder)
    assert languages_of(mine) == {"en"}
    assert languages_of(load_embeddings(str(folder))) == frozenset()


def test_a_provider_needs_langchain_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(MissingPackageError, match="the embedding model 'ollama:x' needs"):
        load_embeddings("ollama:x")


def test_any_other_model_is_embedded_by_torch(tmp_path: Path) -> None:
    encoder = TorchEncoder(str(tiny_bert(tmp_path)))
    vectors = np.asarray(encoder.embed_documents(["how old", "the violin"]))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert encoder.embed_query("how old") == pytest.approx(vectors[0], abs=1e-5)
    assert encoder.embed_documents([]) == []
    assert encoder.name == str(tmp_path)
    encoder.verify()


def test_a_model_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="there are no weights"):
        TorchEncoder(str(tmp_path)).verify()
    for name in (str(tmp_path), "nobody/no-such-model"):
        with pytest.raises(EncoderError, match="not to be had from the Hugging Face hub"):
            TorchEncoder(name).embed_query("a")
