"""A generator as GGUF behind llama.cpp's own server, and the same one in this process."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.parts import Prefix, SegmentLimits
from crag.reflection.backends.completions import CompletionsReflection
from crag.reflection.backends.transformers import TransformersReflection
from tests.gguf_models import write_gguf
from tests.llama_server import serving_gguf
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
