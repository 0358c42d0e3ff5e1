"""The graph without an answer runs the very nodes of the whole one."""

from typing import Any

from crag.graph import build_crag
from crag.graph.corrective import build_knowledge
from crag.parts import Parts
from crag.state import InputState
from crag.testing import FakeRetriever

QUESTION = InputState(question="Who wrote the first program?")


def edges(graph: Any) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.get_graph(xray=1).edges}


def test_it_is_the_middle_of_the_whole_graph(make_parts: Any) -> None:
    whole, ours = edges(build_crag(make_parts())), edges(build_knowledge(make_parts()))
    inner = {edge for edge in ours if not {"__start__", "__end__"} & {*edge}}
    nodes = {node for edge in inner for node in edge}
    assert {"open_run", "retrieve", "grade", "refine", "web:select"} < nodes
    assert inner == {edge for edge in whole if {*edge} <= nodes}
    assert ours - inner == {
        ("__start__", "open_run"),
        *((source, "__end__") for source, target in whole if target == "generate"),
    }


def test_what_is_left_out_is_packaged() -> None:
    state = build_crag(Parts(retriever=FakeRetriever())).invoke(QUESTION)
    assert [event["kind"] for event in state["events"]] == [
        "nothing_retrieved",
        "search_unavailable",
        "abstained",
    ]
