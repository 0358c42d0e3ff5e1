"""The server's MCP endpoint, used by a real MCP client."""

from typing import Any

import pytest

from tests.server.asking import GRAPHS, INPUT, QUESTION
from tests.server.chat import ANSWER

pytestmark = [pytest.mark.slow, pytest.mark.development]


async def listed(url: str) -> dict[str, Any]:
    from mcp import Client

    async with Client(f"{url}/mcp") as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


async def call(url: str, tool: str, arguments: dict[str, Any]) -> Any:
    from mcp import Client

    async with Client(f"{url}/mcp") as client:
        return await client.call_tool(tool, arguments)


def state_of(result: Any) -> dict[str, Any]:
    """Return the state of a result, which was asked for with the trace."""
    assert not result.is_error
    state: dict[str, Any] = result.structured_content
    return state


async def test_the_graphs_are_listed_as_tools_that_ask_for_a_question(url: str) -> None:
    tools = await listed(url)
    assert set(tools) == set(GRAPHS)
    for tool in tools.values():
        assert tool.description
        assert not tool.description.startswith("Tool based on")
        assert set(tool.input_schema["properties"]) == {"question", "trace"}
        assert tool.input_schema["required"] == ["question"]
        assert all(one["description"] for one in tool.input_schema["properties"].values())
    assert "citations" in tools["crag"].description


async def test_a_call_gets_answer_certainty_and_sources(url: str) -> None:
    result = await call(url, "crag", INPUT)
    assert not result.is_error
    assert result.structured_content is None
    (content,) = result.content
    answer, rest = content.text.split("\n\n", 1)
    outcome, source = rest.splitlines()
    assert answer == ANSWER
    assert outcome == "Outcome: answered from the sources."
    assert source.startswith("[")
    assert f": {url}/?source=action.md#L" in source
    assert len(content.text) < 4000


async def test_the_trace_is_the_whole_state(url: str) -> None:
    state = state_of(await call(url, "rag", {"question": QUESTION, "trace": True}))
    assert state["question"] == QUESTION
    assert state["answer"] == ANSWER
    assert len(state["documents"]) == len(state["scores"] or state["documents"])


async def test_an_assistant_is_a_tool_with_settings_of_its_own(url: str, client: Any) -> None:
    made = client.assistants.create(
        "crag", name="ask the guide", description="Answers questions about Corrective RAG.",
        context={"k": 1, "strips_kept": 1},
    )  # fmt: skip
    try:
        tool = (await listed(url))["ask_the_guide"]
        assert tool.description == "Answers questions about Corrective RAG."
        result = await call(url, "ask_the_guide", {**INPUT, "trace": True})
        assert len(state_of(result)["documents"]) == 1
    finally:
        client.assistants.delete(made["assistant_id"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        *[
            (asked, "Nothing was asked: put a text into the argument `question`.")
            for asked in ({"question": " "}, {}, {"question": ["Why?"]}, {"question": True})
        ],
        ({**INPUT, "trace": "false"}, "`trace` is true or false, not a text or a number."),
        ({**INPUT, "k": 3, "a": 1}, "A tool takes `question` and `trace`, and no `a`, `k`."),
    ],
)
async def test_arguments_of_no_use_get_a_sentence(
    url: str, arguments: dict[str, Any], told: str
) -> None:
    result = await call(url, "crag", arguments)
    assert result.is_error
    assert result.content[0].text == told


async def test_a_question_that_is_refused_gets_the_reason(url: str) -> None:
    result = await call(url, "crag", {"question": "why " * 2500})
    assert result.is_error
    assert "9,999 characters" in result.content[0].text.replace("9999", "9,999")


async def test_an_unknown_tool_is_an_error_of_the_protocol(url: str) -> None:
    from mcp import Client, MCPError

    async with Client(f"{url}/mcp") as client:
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", INPUT)
