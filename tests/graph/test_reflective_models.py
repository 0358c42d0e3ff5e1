"""Models with reflection tokens through the compiled graphs, in process and behind a server."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.parts import ReflectionBackend
from crag.reflection.backends.completions import CompletionsReflection
from crag.reflection.backends.transformers import TransformersReflection
from crag.testing import FakeRetriever, FakeSearcher
from tests.graph.reflective import (
    WAYS,
    build_self_crag,
    build_self_rag,
    kinds,
    plain,
    reflecting,
    state_by,
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


def about(*things: str) -> FakeRetriever:
    shown = {thing: passage(thing) for thing in things}
    documents = [
        Document(given.text, metadata={"title": given.title, "source": f"{thing}.md"})
        for thing, given in shown.items()
    ]
    return FakeRetriever(documents=documents)


def graph_of(
    make_parts: Any, build: Any, backend: ReflectionBackend, *things: str, **replaced: Any
) -> Any:
    """Return a graph that finds what is known of things; to Self-CRAG only of the first one."""
    found = about(*(things[:1] if build is build_self_crag else things))
    given = {"retriever": found, "searcher": FakeSearcher([]), "reflection": backend} | replaced
    return build(reflecting(make_parts, **given))


def asked(thing: str) -> dict[str, str]:
    return {"question": question(thing).instruction}


def same(found: Any, expected: Any) -> None:
    """Compare by structure; the few members that a server leaves out are below 1e-4 each."""
    if isinstance(expected, dict):
        for key in expected.keys() | found.keys():
            same(found.get(key, 0.0), expected.get(key, 0.0))
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            same(left, right)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=5e-4)
    else:
        assert found == expected


def judged(state: Any) -> dict[str, Any]:
    """Return what must not depend on how the model is reached."""
    kept = plain(state)
    keys = ("answer", "citations", "reflection")
    told = {key: kept[key] for key in keys}
    # Not the ratio, which follows from the probabilities: small ones that a server leaves out would
    # move it as far as they are a large share of the others.
    compared = ("segment", "hypothesis", "action", "probabilities", "emitted")
    told["reflection"]["choices"] = [
        {key: choice[key] for key in compared} for choice in kept["reflection"]["choices"]
    ]
    # Members below the listed ones are flagged there, and their words carry rounded numbers.
    for critique in told["reflection"]["critiques"]:
        critique["flags"] = [flag for flag in critique["flags"] if flag != "member_missing"]
    return told


@pytest.mark.parametrize("constraints", ["soft", "hard"])
@pytest.mark.parametrize(
    ("form", "thing", "answer"),
    [
        ("short", "kettle", "The kettle is red [1]."),
        ("long", "lantern", "The lantern is green [1]."),
    ],
)
@pytest.mark.parametrize("build", [build_self_rag, build_self_crag])
async def test_both_ways_to_reach_a_model_answer_alike(
    make_parts: Any,
    local: TransformersReflection,
    remote: CompletionsReflection,
    build: Any,
    form: str,
    thing: str,
    answer: str,
    constraints: str,
) -> None:
    settings = {"form": form, "constraints": constraints, **LIMITS}
    things = (thing, "violin")
    expected = None
    for backend in (local, remote):
        for way in WAYS:
            graph = graph_of(make_parts, build, backend, *things)
            state = await state_by(way, graph, asked(thing), **settings)
            assert state["answer"].startswith(answer)
            assert state["citations"][0]["source"]["url"] == f"{thing}.md"
            assert state["reflection"]["approximation"] == ""
            # One call for the candidates of each round, and one for the decisions before it.
            asked_for = {choice["segment"] for choice in state["reflection"]["choices"]}
            assert state["usage"]["llm_calls"] == len(rounds(state)) + len(asked_for)
            assert (len(rounds(state)) > 1) == (form == "long")
            expected = expected or judged(state)
            same(judged(state), expected)


def rounds(state: Any) -> set[int]:
    """Return the segments for which something was generated."""
    return {critique["segment"] for critique in state["reflection"]["critiques"]}


def test_a_server_that_is_gone_is_an_event(make_parts: Any) -> None:
    with completing(TINY_LLAMA) as server:
        url = server.url
    gone = CompletionsReflection("tiny", base_url=url, retries=0, timeout=2)
    state = graph_of(make_parts, build_self_crag, gone, "kettle").invoke(asked("kettle"))
    assert kinds(state)[-3:] == ["model_failed", "model_failed", "abstained"]
