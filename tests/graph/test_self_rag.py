"""Self-RAG as a graph: which nodes run, what they cost, and that all ways to call agree."""

from typing import Any

import pytest

from crag.testing import fake_decision
from tests.graph.reflective import (
    QUESTION,
    build_self_crag,
    build_self_rag,
    goes_on,
    kinds,
    reflecting,
    steps,
)

SHORT = [
    "open_run",
    "decide",
    "retrieve",
    "prepare_passages",
    "reflect:short_form",
    "reflect:finish_reflection",
    "reflect",
]
DIRECT = ["open_run", "decide", "reflect:short_form", "reflect:finish_reflection", "reflect"]
LONG = [*SHORT[:4], "reflect:beam_step", "reflect:beam_step", *SHORT[-2:]]
DIRECT_LONG = ["open_run", "decide", "reflect:beam_step", *SHORT[-2:]]
UNSURE = fake_decision(0.3)


@pytest.mark.parametrize(
    ("settings", "decision", "order", "decisions"),
    [
        ({}, UNSURE, SHORT, 1),
        ({"delta": 0.3}, UNSURE, DIRECT, 1),
        ({"delta": 0.29}, UNSURE, SHORT, 1),
        ({"retrieval_mode": "always"}, fake_decision(0.0), SHORT, 0),
        ({"retrieval_mode": "never"}, fake_decision(1.0), DIRECT, 0),
        ({"retrieval_mode": "hard"}, fake_decision(0.51), SHORT, 1),
        ({"retrieval_mode": "hard"}, fake_decision(0.49), DIRECT, 1),
        ({"retrieval_mode": "hard", "delta": 0.0}, fake_decision(0.49), DIRECT, 1),
    ],
)
def test_the_decision_chooses_the_path(
    make_parts: Any, settings: Any, decision: Any, order: list[str], decisions: int
) -> None:
    parts = reflecting(make_parts, otherwise=decision)
    assert steps(build_self_rag(parts), **settings) == order
    state = build_self_rag(parts).invoke(QUESTION, context=settings)
    assert state["usage"] == {"llm_calls": 1 + decisions}
    assert len(parts.reflection.rounds) == 2
    assert len(parts.retriever.questions) == (2 if order is SHORT else 0)
    assert state["reflection"]["choices"][0]["action"] == (
        "retrieve" if order is SHORT else "no_retrieve"
    )


@pytest.mark.parametrize(
    ("settings", "order", "calls"),
    [
        # A round each for two sentences, and before each of them a decision.
        ({}, LONG, 4),
        ({"retrieval_mode": "always"}, LONG, 2),
        ({"retrieval_mode": "hard"}, LONG, 3),
        ({"retrieval_mode": "never"}, DIRECT_LONG, 1),
    ],
)
def test_the_long_form_shows_and_costs_its_rounds(
    make_parts: Any, settings: Any, order: list[str], calls: int
) -> None:
    parts = reflecting(make_parts, goes_on)
    assert steps(build_self_rag(parts), form="long", **settings) == order
    state = build_self_rag(parts).invoke(QUESTION, context={"form": "long", **settings})
    assert state["usage"] == {"llm_calls": calls}


@pytest.mark.parametrize("build", [build_self_rag, build_self_crag])
@pytest.mark.parametrize("settings", [{}, {"form": "long"}])
@pytest.mark.parametrize("fails_after", [0, 1])
def test_a_failure_before_there_is_any_text_abstains(
    make_parts: Any, build: Any, settings: Any, fails_after: int
) -> None:
    parts = reflecting(make_parts, goes_on, fails_after=fails_after)
    state = build(parts).invoke(QUESTION, context=settings)
    node = "beam_step" if settings else "short_form"
    failed = [(event["node"], event["fallback"]) for event in state["events"][:-1]]
    assert failed == [*[("decide", "retrieve")][fails_after:], (node, "abstain")]
    assert kinds(state) == ["model_failed"] * (2 - fails_after) + ["abstained"]
    assert state["events"][-1]["detail"] == "the model failed"
    assert state["outcome"] == "not_found"
    assert state["reflection"]["answer"] == ""
    assert state["usage"].get("llm_calls", 0) == fails_after
