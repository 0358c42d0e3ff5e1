"""The real LangGraph server on loopback, driven as Studio drives it."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from crag.settings import Settings

ROOT = Path(__file__).parents[1]
QUESTION = {
    "question": "What happens when every retrieved document scores below the lower threshold?"
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("server") / "index"
    crag = Path(sys.executable).with_name("crag")
    command = [crag, "index", str(ROOT / "docs" / "method"), "--index", str(location)]
    subprocess.run(command, check=True, capture_output=True)
    return location


@pytest.fixture(scope="module")
def client(index: Path) -> Iterator[Any]:
    """Start `langgraph dev` without network or key; stop it and all it started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    secret = ("_KEY", "_TOKEN")
    environment = {name: value for name, value in os.environ.items() if not name.endswith(secret)}
    environment |= {"CRAG_INDEX": str(index), "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    langgraph = Path(sys.executable).with_name("langgraph")
    command = [langgraph, "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
    command += [
        "--port",
        str(port),
        "--n-jobs-per-worker",
        "8",
    ]
    here = index.parent  # The server keeps its state where it runs: not in the checkout.
    shutil.copy(ROOT / "langgraph.json", here)
    (here / "graph").symlink_to(ROOT / "graph")
    log = (here / "server.log").open("w")
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        command, cwd=here, env=environment, stdout=log, stderr=subprocess.STDOUT
    ) as server:
        try:
            wait_for(url, server)
            with get_sync_client(url=url) as client:
                yield client
        finally:
            server.terminate()
            server.wait(20)
            log.close()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "the server stopped"
        try:
            if httpx.get(f"{url}/ok").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail("the server did not start in a minute")


def assistant(client: Any, graph: str) -> str:
    found = client.assistants.search(graph_id=graph)
    assert len(found) == 1
    return str(found[0]["assistant_id"])


def test_the_settings_schema_shows_every_field(client: Any) -> None:
    schema = client.assistants.get_schemas(assistant(client, "crag"))["context_schema"]
    assert set(schema["properties"]) == set(Settings.model_fields)
    for name, field in schema["properties"].items():
        assert field["description"], name
        assert "default" in field, name
    assert schema["properties"]["k"]["minimum"] == 1
    assert schema["properties"]["k"]["maximum"] == 1000
    assert schema["properties"]["upper"]["anyOf"][0] == {
        "type": "number", "minimum": -100, "maximum": 100,
    }  # fmt: skip
    assert "popqa" in schema["properties"]["task"]["enum"]


def test_the_drawn_graph_has_all_nodes_and_edges(client: Any) -> None:
    drawn = client.assistants.get_graph(assistant(client, "crag"), xray=1)
    assert {node["id"] for node in drawn["nodes"]} == {
        "__start__", "contextualize", "retrieve", "grade", "refine", "web:rewrite", "web:confirm",
        "web:search",
        "web:read", "web:select", "generate", "__end__",
    }  # fmt: skip
    assert {(edge["source"], edge["target"]) for edge in drawn["edges"]} == {
        ("__start__", "contextualize"), ("contextualize", "retrieve"),
        ("__start__", "retrieve"), ("retrieve", "grade"), ("grade", "refine"),
        ("grade", "web:rewrite"), ("web:rewrite", "web:confirm"), ("web:confirm", "web:search"),
        ("web:search", "web:read"), ("web:read", "web:select"), ("refine", "generate"),
        ("web:select", "generate"),
        ("generate", "__end__"),
    }  # fmt: skip


def test_self_crag_is_drawn_with_the_graphs_within(client: Any) -> None:
    drawn = client.assistants.get_graph(assistant(client, "self_crag"), xray=1)
    edges = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    assert {node["id"] for node in drawn["nodes"]} >= {
        "decide", "retrieve", "grade", "refine", "web:rewrite", "web:select", "offer",
        "reflect:compete", "reflect:extend", "reflect:scan", "reflect:conclude",
    }  # fmt: skip
    assert edges >= {
        ("decide", "retrieve"), ("grade", "refine"), ("grade", "web:rewrite"),
        ("refine", "offer"), ("web:select", "offer"), ("reflect:extend", "reflect:extend"),
        ("reflect:extend", "reflect:conclude"), ("reflect:compete", "reflect:conclude"),
    }  # fmt: skip


def test_self_crag_streams_the_updates_of_its_subgraph(client: Any) -> None:
    stream = client.runs.stream(
        None, "self_crag", input=QUESTION, context={"form": "long"}, stream_mode="updates",
        stream_subgraphs=True,
    )  # fmt: skip
    parts = [part for part in stream if part.event.startswith("updates")]
    nodes = [node for part in parts for node in part.data]
    assert nodes[:5] == ["decide", "retrieve", "grade", "refine", "offer"]
    assert nodes[5] == "extend"
    assert nodes[-2:] == ["conclude", "reflect"]
    within = [part for part in parts if "extend" in part.data]
    assert within[0].event.startswith("updates|reflect:")
    assert within[0].data["extend"]["critiques"][0]["relevance"] is not None


def test_self_rag_answers_with_its_critique(client: Any) -> None:
    state = client.runs.wait(None, "self_rag", input=QUESTION)
    assert "Incorrect" in state["answer"]
    assert state["citations"][0]["source"]["url"].endswith(".md")
    assert len(state["critiques"]) == len(state["passages"]) == 10
    assert sum(critique["chosen"] for critique in state["critiques"]) == 1
    assert "quotation" in state["approximation"]


def test_a_threaded_run_returns_answer_citations_and_trace(client: Any) -> None:
    thread = client.threads.create()["thread_id"]
    state = client.runs.wait(thread, "crag", input=QUESTION)
    assert "Incorrect" in state["answer"]
    assert state["citations"][0]["source"]["url"].endswith(".md")
    assert len(state["scores"]) == len(state["documents"]) == 10
    assert state["thresholds"]["lower"] < state["thresholds"]["upper"]
    assert client.threads.get_state(thread)["values"]["answer"] == state["answer"]


def test_updates_stream_node_by_node(client: Any) -> None:
    stream = client.runs.stream(None, "crag", input=QUESTION, stream_mode="updates")
    nodes = [node for part in stream if part.event == "updates" for node in part.data]
    assert nodes[:2] == ["retrieve", "grade"]
    assert nodes[-1] == "generate"


def test_a_changed_threshold_changes_the_action(client: Any) -> None:
    def action(**context: float) -> str:
        return str(client.runs.wait(None, "crag", input=QUESTION, context=context)["action"])

    assert action(upper=-0.9, lower=-1.0) == "correct"
    assert action(upper=1.0, lower=-1.0) == "ambiguous"
    assert action(upper=1.0, lower=1.0) == "incorrect"


def test_errors_reach_the_client_with_their_fix(client: Any) -> None:
    with pytest.raises(Exception, match="question is empty"):
        client.runs.wait(None, "crag", input={"question": " "})


def test_plain_retrieval_is_served_too(client: Any) -> None:
    state = client.runs.wait(None, "rag", input=QUESTION)
    assert state["answer"]
    assert "action" not in state
