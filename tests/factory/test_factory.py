"""Which parts the environment chooses."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from crag.errors import CragError, MissingPackageError, ModelError
from crag.evaluators import ReaderAttributor, ReaderEvaluator
from crag.factory.embeddings import choose_encoder
from crag.factory.parts import choose_attributor, choose_parts, choose_searcher
from crag.models.encoder import DEFAULT_MODEL, packaged_encoder
from crag.parts import PageReader, Passage
from crag.runtime.environment import Environment
from crag.testing import FakeChatModel, FakeEvaluator
from tests.loopback import Loopback, serving

OWN = """
from crag.testing import FakeEvaluator

NUMBER = 7


def archive(query, limit): ...


def strict():
    return FakeEvaluator(0.25)
"""


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.
    (tmp_path / "own_search.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def environment(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Environment:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Environment()


TAVILY = "TavilySearcher('https://api.tavily.com')"
SEARXNG = "SearxngSearcher('http://localhost:8888/search')"
WIKIPEDIA = "WikipediaSearcher('https://en.wikipedia.org/w/api.php')"
KEY = {"TAVILY_API_KEY": "tvly-secret"}
SERVER = {"SEARXNG_URL": "http://localhost:8888"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (KEY, TAVILY),
        (KEY | SERVER, TAVILY),
        (SERVER, SEARXNG),
        ({"SEARXNG_URL": "http://localhost:8888/"}, SEARXNG),
        (KEY | SERVER | {"CRAG_SEARCH": "searxng"}, SEARXNG),
        (KEY | {"CRAG_SEARCH": " Wikipedia "}, WIKIPEDIA),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_URL": "https://de.wikipedia.org"},
            "WikipediaSearcher('https://de.wikipedia.org/w/api.php')",
        ),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_URL": "http://127.0.0.1:1"},
            "WikipediaSearcher('http://127.0.0.1:1/w/api.php')",
        ),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_URL": "http://127.0.0.1:1/m/api.php"},
            "WikipediaSearcher('http://127.0.0.1:1/m/api.php')",
        ),
        (
            KEY | {"TAVILY_BASE_URL": "http://127.0.0.1:1"},
            "TavilySearcher('http://127.0.0.1:1')",
        ),
        ({}, "None"),
        ({"TAVILY_BASE_URL": "http://127.0.0.1:1"}, "None"),
        (KEY | SERVER | {"CRAG_SEARCH": "none"}, "None"),
    ],
)
def test_what_is_configured_chooses_the_search(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = choose_parts(environment(monkeypatch, **variables))
    assert repr(parts.searcher) == expected
    # Pages are read only where there is a search.
    assert isinstance(parts.reader, PageReader) == (expected != "None")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"CRAG_SEARCH": "google"},
            "'CRAG_SEARCH' cannot be 'google': allowed are tavily, wikipedia, searxng, none and",
        ),
        ({"CRAG_SEARCH": "own_search:NUMBER"}, "it must be a function search(query, limit)"),
        ({"CRAG_SEARCH": "tavily"}, "set TAVILY_API_KEY"),
        ({"CRAG_SEARCH": "searxng"}, "set SEARXNG_URL"),
        ({"SEARXNG_URL": "localhost:8888"}, "'SEARXNG_URL' cannot be 'localhost:8888': "),
        (KEY | {"TAVILY_BASE_URL": "x"}, "'TAVILY_BASE_URL' cannot be 'x': "),
        ({"CRAG_CONTACT": "ä"}, "'CRAG_CONTACT' cannot be 'ä': "),
    ],
)
def test_what_is_configured_wrongly_is_refused_with_the_fix(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CragError) as caught:
        choose_searcher(environment(monkeypatch, **variables))
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


KEYED = {"OPENAI_API_KEY": "sk-a-secret-key"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "EmbeddedReflection"),
        (KEYED, "PromptedReflection"),
        (KEYED | {"CRAG_REFLECTION": "Embedded"}, "EmbeddedReflection"),
        (
            {"CRAG_REFLECTION": "server", "CRAG_REFLECTION_URL": "http://localhost:8000/v1"},
            "CompletionsReflection",
        ),
        (
            {"CRAG_REFLECTION": "./model"},
            "TransformersReflection",
        ),
    ],
)
def test_who_reflects(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    backend = choose_parts(environment(monkeypatch, **variables)).reflection_or_packaged()
    assert type(backend).__name__ == expected


@pytest.mark.parametrize(
    ("variables", "match"),
    [
        ({"CRAG_REFLECTION": "prompted"}, "set OPENAI_API_KEY"),
        ({"CRAG_REFLECTION": "server"}, "set CRAG_REFLECTION_URL"),
    ],
)
def test_reflection_that_lacks_something(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], match: str
) -> None:
    chosen = environment(monkeypatch, **variables)
    with pytest.raises(CragError, match=match):
        choose_parts(chosen)


def test_the_reader_attributes_the_sentences_of_a_model_whoever_grades() -> None:
    model, other = FakeChatModel(), FakeEvaluator()
    reader = ReaderEvaluator.packaged()
    assert choose_attributor(other, None) is None
    assert isinstance(choose_attributor(other, model), ReaderAttributor)
    own = choose_attributor(reader, model)
    assert own is not None
    passages = [Passage("Ada", "Ada Lovelace wrote the first program."), Passage("", "It rained.")]
    said = ["The first program was written by Ada Lovelace.", "Bob burnt Moscow in 1812."]
    supported = [
        [one >= own.threshold for one in row] for row in own.support("Who?", said, passages)
    ]
    assert supported == [[True, False], [False, False]]


def test_an_evaluator_of_ones_own_is_named_by_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = choose_parts(environment(monkeypatch, CRAG_EVALUATOR="own_search:strict"))
    assert parts.evaluator.score("Why?", ["Because."]) == [0.25]


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
    with pytest.raises(ModelError, match=r"model openai:m: its server failed: .*401"):
        load("openai:m", server.url).embed_query("a")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:m", "openai:m: set OPENAI_API_KEY, or OPENAI_BASE_URL"),
        ("cohere:embed", "needs the package 'langchain-cohere'"),
        ("intfloat/e5", "allowed are provider:name and module:"),
        ("no_such_module:mine", "'CRAG_EMBEDDING_MODEL' cannot be .*: it cannot be imported"),
        ("json:dumps", "it cannot be made"),
        ("langchain_core.embeddings:FakeEmbeddings", "it cannot be made: 1 validation error"),
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


def test_a_provider_needs_langchain_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(MissingPackageError, match="the embedding model 'ollama:x' needs"):
        load("ollama:x")
