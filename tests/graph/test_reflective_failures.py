"""Reflecting models that fail: an event and a defined result, never an exception."""

from collections.abc import Sequence
from typing import Any

import pytest

from crag.parts import Decision, Prefix
from crag.reflection.testing import FakeReflection
from tests.graph.reflective import (
    OWN,
    QUESTION,
    WAYS,
    build_self_crag,
    build_self_rag,
    goes_on,
    kinds,
    plain,
    reflecting,
    state_by,
)

BUILDERS = [build_self_rag, build_self_crag]
FORMS = [{}, {"form": "long"}]


class Undecided(FakeReflection):
    """Fails at decisions only."""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        del prefixes
        raise ConnectionError("the server is gone")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("settings", FORMS)
async def test_a_failing_decision_retrieves(
    make_parts: Any, way: str, build: Any, settings: Any
) -> None:
    parts = reflecting(make_parts, reflection=Undecided(goes_on))
    state = await state_by(way, build(parts), **settings, retrieval_mode="hard")
    assert kinds(state) == ["model_failed"]
    event = state["events"][0]
    assert (event["node"], event["fallback"]) == ("decide", "retrieve")
    assert "ConnectionError: the server is gone" in event["detail"]
    assert state["reflection"]["choices"][0]["action"] == "retrieve"
    assert state["answer"].startswith("Ada Lovelace wrote the first published program")
    assert state["citations"]
    plain(state)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("settings", FORMS)
@pytest.mark.parametrize("fails_after", [0, 1])
async def test_a_failure_before_there_is_any_text_abstains(
    make_parts: Any, way: str, build: Any, settings: Any, fails_after: int
) -> None:
    parts = reflecting(make_parts, goes_on, fails_after=fails_after)
    state = await state_by(way, build(parts), **settings)
    node = "beam_step" if settings else "short_form"
    failed = [(event["node"], event["fallback"]) for event in state["events"][:-1]]
    assert failed == [*[("decide", "retrieve")][fails_after:], (node, "abstain")]
    assert kinds(state) == ["model_failed"] * (2 - fails_after) + ["abstained"]
    assert state["events"][-1]["detail"] == "the model failed"
    assert state["outcome"] == "not_found"
    assert state["reflection"]["answer"] == ""
    assert state["usage"].get("llm_calls", 0) == fails_after
    plain(state)


def test_usage_and_events_of_two_runs_at_once_stay_apart(make_parts: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    graph = build_self_rag(reflecting(make_parts, goes_on))
    modes = ["always", "never"] * 8
    with ThreadPoolExecutor(4) as pool:
        states = list(
            pool.map(
                lambda mode: graph.invoke(
                    QUESTION, context={"form": "long", "retrieval_mode": mode}
                ),
                modes,
            )
        )
    for mode, state in zip(modes, states, strict=True):
        assert state["usage"] == {"llm_calls": 2 if mode == "always" else 1}
        assert state["answer"].startswith("Ada" if mode == "always" else OWN)
        assert kinds(state) == ([] if mode == "always" else ["own_knowledge"])
