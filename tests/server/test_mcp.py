"""The server's MCP endpoint, used by a real MCP client."""

import ast
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.server.asking import GRAPHS, INPUT, QUESTION
from tests.server.chat import ANSWER

pytestmark = [pytest.mark.slow, pytest.mark.development]


async def listed(url: str) -> dict[str, Any]:
    async with Client(f"{url}/mcp") as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


async def call(url: str, tool: str, arguments: dict[str, Any]) -> Any:
    async with Client(f"{url}/mcp") as client:
        return await client.call_tool(tool, arguments)


def state_of(result: Any) -> dict[str, Any]:
    """Read the state in a result: the server writes it as a Python literal."""
    assert not result.is_error
    (content,) = result.content
    state: dict[str, Any] = ast.literal_eval(content.text)
    return state


async def test_the_graphs_are_listed_as_tools_that_ask_for_a_question(url: str) -> None:
    tools = await listed(url)
    assert set(tools) == set(GRAPHS)
    for tool in tools.values():
        assert tool.description
        assert not tool.description.startswith("Tool based on")
        assert set(tool.input_schema["properties"]) == {"question", "messages"}
        for argument in tool.input_schema["properties"].values():
            assert argument["type"] == "string"
            assert argument["description"]
    assert "citations" in tools["crag"].description


async def test_a_call_gets_answer_citations_and_abstention(url: str) -> None:
    state = state_of(await call(url, "crag", INPUT))
    assert (state["answer"], state["abstained"]) == (ANSWER, False)
    (citation,) = state["citations"]
    assert citation["source"]["url"].endswith("action.md")
    assert state["action"] == "correct"


async def test_a_message_asks_too(url: str) -> None:
    state = state_of(await call(url, "rag", {"messages": QUESTION}))
    assert state["question"] == QUESTION
    assert state["messages"][-1]["content"] == ANSWER


async def test_an_assistant_is_a_tool_with_settings_of_its_own(url: str, client: Any) -> None:
    made = client.assistants.create(
        "crag", name="ask the guide", description="Answers questions about Corrective RAG.",
        context={"k": 1, "strips_kept": 1},
    )  # fmt: skip
    try:
        tool = (await listed(url))["ask_the_guide"]
        assert tool.description == "Answers questions about Corrective RAG."
        result = await call(url, "ask_the_guide", INPUT)
        assert len(state_of(result)["documents"]) == 1
        assert len(result.content[0].text) < 8000
    finally:
        client.assistants.delete(made["assistant_id"])


async def test_a_question_that_cannot_be_asked_is_an_error_of_the_tool(url: str) -> None:
    result = await call(url, "crag", {"question": " "})
    assert result.is_error
    assert result.content[0].text == "QuestionError"


async def test_an_unknown_tool_is_an_error_of_the_protocol(url: str) -> None:
    async with Client(f"{url}/mcp") as client:
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", INPUT)
