"""Self-CRAG as a graph: which branches run, what reflection is given, and what it costs."""

from collections import Counter
from typing import Any

import pytest

from crag.testing import FakeEvaluator, fake_decision
from tests.graph.reflective import (
    OWN,
    QUESTION,
    build_self_crag,
    goes_on,
    kinds,
    reflecting,
    steps,
)

ACTIONS = {
    "correct": FakeEvaluator(0.0, upper=0.0, lower=-0.4),
    "incorrect": FakeEvaluator(0.0, upper=0.5, lower=0.4),
    "ambiguous": FakeEvaluator(0.0, upper=0.5, lower=-0.4),
}
"""Every strip passes, and the thresholds choose the action."""
BEGIN, END = ["open_run", "decide", "retrieve", "grade"], ["reflect:finish_reflection", "reflect"]
WEB = [f"web:{node}" for node in ("rewrite", "search", "read_pages", "select")] + ["web"]
BRANCHES = {"correct": ["refine"], "incorrect": WEB, "ambiguous": ["refine", *WEB]}


def parts_of(make_parts: Any, action: str, candidates: Any = goes_on, **replaced: Any) -> Any:
    return reflecting(make_parts, candidates, evaluator=ACTIONS[action], **replaced)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("knowledge", ["routed", "assembled", "distributed"])
@pytest.mark.parametrize(("form", "node"), [("short", "short_form"), ("long", "beam_step")])
def test_the_branches_that_run(
    make_parts: Any, action: str, knowledge: str, form: str, node: str
) -> None:
    parts = parts_of(make_parts, action)
    run = steps(build_self_crag(parts), form=form, self_crag_knowledge=knowledge)
    branches = BRANCHES[action if knowledge == "routed" else "ambiguous"]
    reflect = [step for step in run if step == f"reflect:{node}"]
    assert 1 <= len(reflect) <= (1 if form == "short" else 6)
    assert run[: len(BEGIN)] == BEGIN
    assert run[-len(reflect) - 3 :] == ["prepare_passages", *reflect, *END]
    assert Counter(run[len(BEGIN) : -len(reflect) - 3]) == Counter(branches)
    assert [step for step in run if step in WEB] == [step for step in WEB if step in branches]
    assert len(parts.searcher.queries) == ("web" in branches)


@pytest.mark.parametrize("form", ["short", "long", "poster"])
def test_a_question_that_needs_nothing_is_answered_directly(make_parts: Any, form: str) -> None:
    parts = parts_of(make_parts, "correct", otherwise=fake_decision(0.1))
    node = {"short": "short_form", "long": "beam_step", "poster": "graded_loop"}[form]
    assert steps(build_self_crag(parts), form=form) == [*BEGIN[:2], f"reflect:{node}", *END]
    state = build_self_crag(parts).invoke(QUESTION, context={"form": form})
    assert (state["answer"], state["citations"]) == (OWN, [])
    assert kinds(state) == ["own_knowledge"]
    assert "0.100 is not above 0.2" in state["events"][0]["detail"]
    assert parts.retriever.questions == parts.searcher.queries == []
