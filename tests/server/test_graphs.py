"""The real LangGraph server on loopback, driven as Studio drives it."""

from typing import Any

import pytest

from tests.server.asking import GRAPHS, INPUT, QUICK, assistant

pytestmark = pytest.mark.slow


def test_the_drawn_graph_has_all_nodes_and_edges(client: Any) -> None:
    drawn = client.assistants.get_graph(assistant(client, "crag"), xray=1)
    assert {node["id"] for node in drawn["nodes"]} == {
        "__start__", "open_run", "acknowledge", "contextualize", "retrieve", "grade", "refine",
        "web:rewrite",
        "web:confirm_search",
        "web:search",
        "web:read_pages", "web:select", "generate", "__end__",
    }  # fmt: skip
    assert {(edge["source"], edge["target"]) for edge in drawn["edges"]} == {
        ("__start__", "open_run"), ("open_run", "acknowledge"), ("acknowledge", "__end__"),
        ("open_run", "contextualize"), ("contextualize", "retrieve"),
        ("open_run", "retrieve"), ("retrieve", "grade"), ("grade", "refine"),
        ("grade", "web:rewrite"), ("web:rewrite", "web:confirm_search"),
        ("web:confirm_search", "web:search"),
        ("web:search", "web:read_pages"), ("web:read_pages", "web:select"), ("refine", "generate"),
        ("web:select", "generate"),
        ("generate", "__end__"),
    }  # fmt: skip


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_graph_has_the_schemas_that_forms_and_chats_are_made_of(
    client: Any, graph: str
) -> None:
    schemas = client.assistants.get_schemas(assistant(client, graph))
    given = schemas["input_schema"]
    assert set(given["properties"]) == {"question", "messages"}
    assert "HumanMessage" in given["$defs"]
    for kind in ("output_schema", "state_schema"):
        assert {"messages", "answer", "citations"} <= set(schemas[kind]["properties"]), kind


def test_the_plainer_graphs_are_drawn_too(client: Any) -> None:
    def nodes(graph: str) -> set[str]:
        drawn = client.assistants.get_graph(assistant(client, graph), xray=1)
        ids = {node["id"] for node in drawn["nodes"]}
        return {name for name in ids if not name.endswith("__")}

    assert nodes("rag") == {
        "open_run",
        "acknowledge",
        "contextualize",
        "retrieve",
        "pass_through",
        "generate",
    }
    assert nodes("self_rag") == {
        "open_run", "acknowledge", "contextualize", "decide", "retrieve", "prepare_passages",
        "reflect:short_form", "reflect:beam_step",
        "reflect:graded_loop",
        "reflect:finish_reflection",
    }  # fmt: skip


def test_self_crag_is_drawn_with_the_graphs_within(client: Any) -> None:
    drawn = client.assistants.get_graph(assistant(client, "self_crag"), xray=1)
    edges = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    assert {node["id"] for node in drawn["nodes"]} >= {
        "decide", "retrieve", "grade", "refine", "web:rewrite", "web:select", "prepare_passages",
        "reflect:short_form", "reflect:beam_step", "reflect:graded_loop",
        "reflect:finish_reflection",
    }  # fmt: skip
    assert edges >= {
        ("decide", "retrieve"), ("grade", "refine"), ("grade", "web:rewrite"),
        ("refine", "prepare_passages"), ("web:select", "prepare_passages"),
        ("reflect:beam_step", "reflect:beam_step"),
        ("reflect:beam_step", "reflect:finish_reflection"),
        ("reflect:short_form", "reflect:finish_reflection"),
    }  # fmt: skip


def test_self_crag_streams_the_updates_of_its_subgraph(client: Any) -> None:
    stream = client.runs.stream(
        None, "self_crag", input=INPUT, context={"form": "long"} | QUICK, stream_mode="updates",
        stream_subgraphs=True,
    )  # fmt: skip
    parts = [part for part in stream if part.event.startswith("updates")]
    nodes = [node for part in parts for node in part.data]
    assert nodes[:6] == ["open_run", "decide", "retrieve", "grade", "refine", "prepare_passages"]
    assert nodes[6] == "beam_step"
    assert nodes[-2:] == ["finish_reflection", "reflect"]
    within = [part for part in parts if "beam_step" in part.data]
    assert within[0].event.startswith("updates|reflect:")
    assert within[0].data["beam_step"]["critiques"][0]["relevance"] is not None


def test_self_rag_answers_with_its_critique(client: Any) -> None:
    state = client.runs.wait(None, "self_rag", input=INPUT)
    assert "Incorrect" in state["answer"]
    assert state["citations"][0]["source"]["url"].endswith(".md")
    assert len(state["critiques"]) == len(state["passages"]) > 3
    assert sum(critique["chosen"] for critique in state["critiques"]) == 1
    assert "quotation" in state["approximation"]


def test_a_threaded_run_returns_answer_citations_and_trace(client: Any) -> None:
    thread = client.threads.create()["thread_id"]
    state = client.runs.wait(thread, "crag", input=INPUT)
    assert "Incorrect" in state["answer"]
    assert state["citations"][0]["source"]["url"].endswith(".md")
    assert len(state["scores"]) == len(state["documents"]) > 3
    assert state["thresholds"]["lower"] < state["thresholds"]["upper"]
    assert client.threads.get_state(thread)["values"]["answer"] == state["answer"]


def test_updates_stream_node_by_node(client: Any) -> None:
    stream = client.runs.stream(None, "crag", input=INPUT, context=QUICK, stream_mode="updates")
    nodes = [node for part in stream if part.event == "updates" for node in part.data]
    assert nodes[:3] == ["open_run", "retrieve", "grade"]
    assert nodes[-1] == "generate"


def test_a_changed_threshold_changes_the_action(client: Any) -> None:
    def action(**context: float) -> str:
        state = client.runs.wait(None, "crag", input=INPUT, context=QUICK | context)
        return str(state["action"])

    assert action(upper=-0.9, lower=-1.0) == "correct"
    assert action(upper=1.0, lower=-1.0) == "ambiguous"
    assert action(upper=1.0, lower=1.0) == "incorrect"


def test_errors_reach_the_client_with_their_fix(client: Any) -> None:
    with pytest.raises(Exception, match="question is empty"):
        client.runs.wait(None, "crag", input={"question": " "})


def test_plain_retrieval_is_served_too(client: Any) -> None:
    state = client.runs.wait(None, "rag", input=INPUT)
    assert state["answer"]
    assert state["action"] is None
