"""Models with reflection tokens through the compiled graphs, in process and behind a server."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.papers.settings import PaperSettings
from crag.reflection.backends.completions import CompletionsReflection
from crag.reflection.backends.transformers import TransformersReflection
from crag.testing import FakeRetriever, FakeSearcher
from tests.graph.reflective import (
    build_self_crag,
    build_self_rag,
    reflecting,
)
from tests.reflection.backends.completions_server import completing
from tests.reflection.backends.tiny_llama import TINY_LLAMA, one_core, passage, question

LIMITS = {"max_new_tokens": 24, "max_depth": 3}


@pytest.fixture(scope="module", autouse=True)
def _one_core() -> Iterator[None]:
    with one_core():
        yield


@pytest.fixture(scope="module")
def local() -> TransformersReflection:
    return TransformersReflection(TINY_LLAMA, device="cpu")


@pytest.fixture(scope="module")
def remote() -> Iterator[CompletionsReflection]:
    with completing(TINY_LLAMA) as server:
        yield CompletionsReflection("tiny", base_url=server.url, retries=0, timeout=30)


@pytest.mark.parametrize(
    ("form", "thing", "answer"),
    [
        ("short", "kettle", "The kettle is red [1]."),
        ("long", "lantern", "The lantern is green [1]."),
    ],
)
@pytest.mark.parametrize("build", [build_self_rag, build_self_crag])
@pytest.mark.parametrize("name", ["local", "remote"])
def test_both_ways_to_reach_a_model_answer_alike(
    make_parts: Any, request: Any, name: str, build: Any, form: str, thing: str, answer: str
) -> None:
    given = passage(thing)
    about = Document(given.text, metadata={"title": given.title, "source": f"{thing}.md"})
    parts = reflecting(
        make_parts,
        retriever=FakeRetriever(documents=[about]),
        searcher=FakeSearcher([]),
        reflection=request.getfixturevalue(name),
    )
    settings = PaperSettings.model_validate({"form": form, **LIMITS})
    asked = {"question": question(thing).instruction}
    state = build(parts).invoke(asked, context=settings)
    assert state["answer"].startswith(answer)
    assert state["citations"][0]["source"]["url"] == f"{thing}.md"
    assert state["reflection"]["approximation"] == ""
    # One call for the candidates of each round, and one for the decisions before it.
    rounds = {critique["segment"] for critique in state["reflection"]["critiques"]}
    asked_for = {choice["segment"] for choice in state["reflection"]["choices"]}
    assert state["usage"]["llm_calls"] == len(rounds) + len(asked_for)
    assert (len(rounds) > 1) == (form == "long")
