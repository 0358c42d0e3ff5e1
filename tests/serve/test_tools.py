"""The tools at `/mcp`, used by a real MCP client."""

from typing import Any

import httpx
import pytest
from mcp import Client

from crag.serve.tools import LONGEST, told

QUESTION = {"question": "Who wrote the first program?"}


async def call(url: str, tool: str, arguments: dict[str, Any]) -> Any:
    async with Client(f"{url}/mcp") as client:
        return await client.call_tool(tool, arguments)


async def test_the_graphs_are_tools_that_ask_for_a_question(url: str) -> None:
    async with Client(f"{url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"crag", "rag"}
    for tool in tools.values():
        assert set(tool.input_schema["properties"]) == {"question", "trace"}
        assert tool.input_schema["required"] == ["question"]
        assert all(one["description"] for one in tool.input_schema["properties"].values())
    assert tools["crag"].title == "Corrected"
    assert "citations" in tools["crag"].description


def test_a_client_that_listens_for_more_learns_that_there_is_none(url: str) -> None:
    listening = httpx.get(f"{url}/mcp", headers={"Accept": "text/event-stream"})
    assert listening.status_code == 405


async def test_a_call_gets_answer_certainty_and_sources_and_the_state_on_request(url: str) -> None:
    result = await call(url, "crag", QUESTION)
    assert not result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert content.text == (
        "Ada did [1].\n\nOutcome: answered from the sources.\n"
        f"[1] Ada Lovelace, line 3: {url}/?source=ada.md#L3"
    )
    state = (await call(url, "rag", {**QUESTION, "trace": True})).structured_content
    assert state["question"] == QUESTION["question"]
    assert state["documents"][0]["metadata"]["source"] == "/notes/ada.md"


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


def state(answer: str, citations: int, outcome: str = "answered") -> dict[str, Any]:
    source = {"id": "a", "title": "A title", "url": "https://a.example/b", "position": "line 3"}
    cited = [{"number": at + 1, "source": source} for at in range(citations)]
    return {"answer": answer, "outcome": outcome, "citations": cited, "documents": []}


@pytest.mark.parametrize(("length", "citations"), [(50_000, 0), (2_000, 400), (50_000, 400)])
def test_a_result_stays_short(length: int, citations: int) -> None:
    text = told(state("a" * length, citations), "http://a/")
    assert len(text) <= LONGEST
    assert "ask with `trace`" in text
    assert "\nOutcome: answered from the sources." in text
