"""The tools at `/mcp`, used by a real MCP client."""

from typing import Any

import httpx
import pytest
from mcp import Client

QUESTION = {"question": "Who wrote the first program?"}


async def call(url: str, tool: str, arguments: dict[str, Any]) -> Any:
    async with Client(f"{url}/mcp") as client:
        return await client.call_tool(tool, arguments)


async def test_the_graphs_are_tools_that_ask_for_a_question(url: str) -> None:
    async with Client(f"{url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"crag", "rag"}
    for tool in tools.values():
        assert set(tool.input_schema["properties"]) == {"question"}
        assert tool.input_schema["required"] == ["question"]
        assert all(one["description"] for one in tool.input_schema["properties"].values())
    assert tools["crag"].title == "Corrected"
    assert "citations" in tools["crag"].description


def test_a_client_that_listens_for_more_learns_that_there_is_none(url: str) -> None:
    listening = httpx.get(f"{url}/mcp", headers={"Accept": "text/event-stream"})
    assert listening.status_code == 405


async def test_a_call_gets_answer_certainty_and_sources(url: str) -> None:
    result = await call(url, "crag", QUESTION)
    assert not result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert content.text == (
        "Ada did [1].\n\nOutcome: answered from the sources.\n"
        f"[1] Ada Lovelace, line 3: {url}/?source=ada.md#L3"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "question"),
        ({"question": ""}, "question"),
        ({"question": " "}, "question is empty"),
        ({"question": "why " * 2500}, "the limit is 8,000"),
    ],
)
async def test_what_cannot_be_asked_is_said(
    url: str, arguments: dict[str, Any], words: str
) -> None:
    result = await call(url, "crag", arguments)
    assert result.is_error
    assert words in result.content[0].text
