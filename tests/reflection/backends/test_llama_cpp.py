"""A generator as GGUF behind llama.cpp's own server, and the same one in this process."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import ModelError
from crag.parts import Prefix, SegmentLimits
from crag.reflection.backends.completions import CompletionsReflection
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import TOKENS
from tests.gguf_models import write_gguf
from tests.graph.reflective import build_self_crag, build_self_rag, state_by
from tests.graph.test_reflective_models import LIMITS, asked, graph_of, judged, same
from tests.llama_server import serving_gguf
from tests.loopback import serving
from tests.reflection.backends.test_completions import ALL
from tests.reflection.backends.test_completions import same as same_candidates
from tests.reflection.backends.tiny_llama import (
    byte_pair_llama,
    mixed,
    one_core,
    question,
)


@pytest.fixture(scope="module", autouse=True)
def _one_core() -> Iterator[None]:
    with one_core():
        yield


@pytest.fixture(scope="module")
def local() -> TransformersReflection:
    return TransformersReflection(byte_pair_llama(), device="cpu")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("served") / "tiny.gguf"
    with serving_gguf(write_gguf(byte_pair_llama(), file)) as url:
        yield f"{url}/v1"


def client(url: str, **options: Any) -> CompletionsReflection:
    return CompletionsReflection("tiny", base_url=url, retries=0, timeout=30, **options)


@pytest.mark.parametrize("whole", [False, True])
def test_log_probabilities_are_those_of_this_process(
    url: str, local: TransformersReflection, whole: bool
) -> None:
    limits, remote = SegmentLimits(24, whole_answer=whole), client(url, top=ALL)
    expected = local.candidates(mixed(), limits)
    same_candidates(remote.candidates(mixed(), limits), expected)
    prefixes = [question("kettle"), Prefix("Say hello."), mixed()[1].prefix]
    for ours, theirs in zip(remote.decide(prefixes), local.decide(prefixes), strict=True):
        assert ours.emitted == theirs.emitted
        assert ours.retrieve == pytest.approx(theirs.retrieve, abs=1e-4)


@pytest.mark.parametrize("form", ["short", "long"])
@pytest.mark.parametrize("build", [build_self_rag, build_self_crag])
async def test_the_graphs_answer_and_critique_alike_and_streamed(
    make_parts: Any, local: TransformersReflection, url: str, build: Any, form: str
) -> None:
    states = []
    for backend in (local, client(url)):
        graph = graph_of(make_parts, build, backend, "lantern", "violin")
        states.append(await state_by("stream", graph, asked("lantern"), form=form, **LIMITS))
    here, there = states
    assert there["answer"].startswith("The lantern is green")
    assert there["reflection"]["approximation"] == ""
    assert any(critique["support"] for critique in there["reflection"]["critiques"])
    same(judged(there), judged(here))


def test_a_model_without_the_tokens_is_named() -> None:
    asked: list[dict[str, Any]] = []

    def reply(sent: dict[str, Any]) -> dict[str, Any]:
        asked.append(sent)
        text = sent.get("content", "")
        numbers = [7, 8] if text == TOKENS[0] else [7 + [*TOKENS, "<end>", ""].index(text)]
        return {"eos_token": "<end>", "tokens": numbers}

    with serving(reply) as server:
        with pytest.raises(ModelError, match=r"no single id for \[No Retrieval\]; take"):
            client(f"{server.url}/v1", api_key="k").load()
        paths = {(request["path"], request["authorization"]) for request in server.requests}
        without = client(f"{server.url}/v1", tokens_required=False)
        without.load()
    assert paths == {("/props", "Bearer k"), ("/tokenize", "Bearer k")}
    assert [sent["content"] for sent in asked[1 : len(TOKENS) + 2]] == [*TOKENS, "<end>"]
    assert "lacks 1 of 15" in without.approximation
