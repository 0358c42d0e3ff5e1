"""Graphs on a real LangGraph server, used over `RemoteGraph` like local ones."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from operator import itemgetter
from pathlib import Path
from typing import TypedDict

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnablePassthrough
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

from crag.langchain import as_tool, documents_of
from tests.commands import variables
from tests.server.asking import AMBIGUOUS, QUESTION
from tests.server.chat import ANSWER

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "remote_graph.py"


@pytest.fixture
async def remote(url: str) -> AsyncIterator[RemoteGraph]:
    async with connected(url) as graph:
        yield graph


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[RemoteGraph]:
    """Connect by clients that are closed again, which those of `RemoteGraph` itself are not."""
    async with get_client(url=url) as client:
        with get_sync_client(url=url) as sync_client:
            yield RemoteGraph("crag", client=client, sync_client=sync_client)


async def test_it_is_a_step_of_a_chain(remote: RemoteGraph) -> None:
    chain = {"question": RunnablePassthrough()} | remote | itemgetter("action", "answer")
    action, answer = await chain.ainvoke(QUESTION)
    assert (action, answer) == ("correct", ANSWER)


async def test_it_is_a_tool(remote: RemoteGraph) -> None:
    tool = as_tool(remote, settings={"strips_kept": 2, "max_searches": 0} | AMBIGUOUS)
    call = {"name": tool.name, "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}
    reply = await tool.ainvoke(call)
    assert isinstance(reply, ToolMessage)
    assert (tool.name, reply.status) == ("ask_crag", "success")
    assert "Sources:\n[" in reply.text
    assert "action.md" in reply.text
    assert reply.artifact["action"] == "ambiguous"
    assert sum(strip["kept"] for strip in reply.artifact["internal"]) == 2
    assert "- budget_exhausted: " in reply.text


async def test_its_knowledge_is_read_as_documents(remote: RemoteGraph) -> None:
    found = documents_of(await remote.ainvoke({"question": QUESTION}))
    assert found
    assert {document.metadata["action"] for document in found} == {"correct"}
    assert found[0].metadata["url"].endswith("action.md")


async def test_it_is_a_node_of_a_graph_with_another_state(remote: RemoteGraph) -> None:
    class Own(TypedDict, total=False):
        topic: str
        report: str

    async def research(state: Own) -> Own:
        return Own(report=(await remote.ainvoke({"question": state["topic"]}))["answer"])

    graph = StateGraph(Own)
    graph.add_node("research", research)
    graph.add_edge(START, "research")
    state = await graph.compile().ainvoke({"topic": QUESTION})
    assert state["report"] == ANSWER


def test_its_steps_stream(remote: RemoteGraph) -> None:
    steps = remote.stream({"question": QUESTION}, stream_mode="updates")
    assert [name for step in steps for name in step] == [
        "open_run", "retrieve", "grade", "refine", "generate",
    ]  # fmt: skip


async def test_an_empty_question_is_told_by_the_server(remote: RemoteGraph) -> None:
    tool = as_tool(remote)
    call = {"name": tool.name, "args": {"question": " "}, "id": "1", "type": "tool_call"}
    reply = await tool.ainvoke(call)
    assert reply.status == "error"
    assert "question is empty" in reply.text


async def test_a_server_that_is_down_is_told_to_the_agent_and_by_the_example() -> None:
    """At the same time, because each client tries again for seven seconds."""
    nowhere = "http://127.0.0.1:9"
    async with connected(nowhere) as graph:
        tool = as_tool(graph)
        call = {"name": tool.name, "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}
        *replies, done = await asyncio.gather(
            asyncio.to_thread(tool.invoke, call),
            tool.ainvoke(call),
            asyncio.to_thread(example, nowhere),
        )
    for reply in replies:
        assert reply.status == "error"
        assert reply.text.startswith("No answer: ConnectError: ")
    assert done.returncode == 1
    assert "ask_crag (error):\nNo answer: ConnectError" in done.stdout
    assert done.stderr.endswith("Start it with: make serve\n")


def example(url: str) -> subprocess.CompletedProcess[str]:
    """Run the example of a served graph as a user runs it."""
    command = [sys.executable, "-W", "error", EXAMPLE, "--url", url]
    environment = variables({})
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_example_runs(url: str) -> None:
    done = example(url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"ask_crag (success):\n{ANSWER}\n")
    assert "action.md" in done.stdout
    assert done.stdout.endswith("steps: open_run retrieve grade refine generate\naction: correct\n")
