"""Embedding models by name, against an OpenAI-compatible server on loopback."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from crag.errors import CragError, EncoderError, MissingPackageError
from crag.factory.embeddings import choose_encoder
from crag.models.encoder import DEFAULT_MODEL, packaged_encoder
from crag.runtime.environment import Environment
from crag.text.language import languages_of
from tests.loopback import Loopback, serving


@pytest.fixture
def server() -> Iterator[Loopback]:
    vectors = [{"object": "embedding", "index": n, "embedding": [n, 1.0]} for n in range(2)]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    with serving({"object": "list", "model": "m", "data": vectors, "usage": usage}) as running:
        yield running


def load(name: str, url: str | None = None, **variables: Any) -> Embeddings:
    return choose_encoder(Environment(embedding_model=name, OPENAI_BASE_URL=url, **variables))


def test_a_server_of_ones_own_gets_texts_and_needs_no_key(server: Loopback) -> None:
    embeddings = load("openai:bge-m3", f"{server.url}/v1")
    assert embeddings.embed_documents(["eins", "zwei"]) == [[0.0, 1.0], [1.0, 1.0]]
    assert embeddings.embed_query("drei") == [0.0, 1.0]
    assert [request["input"] for request in server.requests] == [["eins", "zwei"], ["drei"]]
    assert {request["model"] for request in server.requests} == {"bge-m3"}
    assert server.requests[0]["path"] == "/v1/embeddings"
    assert embeddings.embed_documents([]) == []
    assert getattr(embeddings, "name", None) == "openai:bge-m3"


def test_the_key_is_sent(server: Loopback) -> None:
    load("openai:m", server.url, OPENAI_API_KEY="sk-one").embed_query("a")
    assert server.requests[0]["authorization"] == "Bearer sk-one"


def test_a_server_that_fails_is_named(server: Loopback) -> None:
    server.statuses = [401]
    with pytest.raises(EncoderError, match=r"encoder openai:m: its server failed: .*401"):
        load("openai:m", server.url).embed_query("a")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:m", "openai:m: set OPENAI_API_KEY, or OPENAI_BASE_URL"),
        ("cohere:embed", "needs the package 'langchain-cohere'"),
        ("intfloat/e5", "allowed are provider:name and module:"),
        ("no_such_module:mine", "'CRAG_EMBEDDING_MODEL' cannot be .*: it cannot be imported"),
        ("json:dumps", "it cannot be made"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_fix(name: str, words: str) -> None:
    with pytest.raises(CragError, match=words):
        load(name)


def test_a_provider_of_langchain_embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"embeddings": [[0.25, 0.5]]}) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        embeddings = load("ollama:tiny")
        assert embeddings.embed_query("eins") == [0.25, 0.5]
        assert getattr(embeddings, "name", None) == "ollama:tiny"


def test_a_module_names_a_model_of_ones_own() -> None:
    mine = load("crag.models.encoder:packaged_encoder")
    assert mine is load(DEFAULT_MODEL) is packaged_encoder()
    assert languages_of(mine) == {"en"}


def test_a_provider_needs_langchain_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(MissingPackageError, match="the embedding model 'ollama:x' needs"):
        load("ollama:x")
