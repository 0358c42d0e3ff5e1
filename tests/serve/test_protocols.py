"""OpenAI's protocol and MCP, used by real clients."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from mcp import Client

from crag.testing import FakeChatModel
from tests.serve.conftest import graphs
from tests.serve.serving import BEGUN, serving, slow

ASKED: list[Any] = [{"role": "user", "content": "Who wrote the first program?"}]
UNSET = {"stream": None, "stream_options": None, "n": None}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture(scope="module")
def chatting(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def test_the_graphs_are_models(chatting: openai.OpenAI) -> None:
    assert [one.id for one in chatting.models.list()] == ["crag", "rag"]
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4o'; there are crag"):
        chatting.chat.completions.create(model="gpt-4o", messages=ASKED)


def test_a_reply_has_the_answer_its_certainty_and_its_sources(
    chatting: openai.OpenAI, url: str
) -> None:
    # Libraries send null for what is not set.
    reply = chatting.chat.completions.create(model="crag", messages=ASKED, extra_body=UNSET)
    (choice,) = reply.choices
    assert (choice.message.content, choice.finish_reason) == ("Ada did [1].", "stop")
    (found,) = choice.message.annotations or []
    citation = found.url_citation
    assert citation.url == f"{url}/?source=ada.md#L3"
    assert "Ada did [1]."[citation.start_index : citation.end_index] == "[1]"
    assert citation.title == "Ada Lovelace, line 3"
    assert reply.usage
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_a_stream_has_the_same(chatting: openai.OpenAI, url: str) -> None:
    chunks = list(
        chatting.chat.completions.create(
            model="crag", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    texts = [one.choices[0].delta.content or "" for one in chunks if one.choices]
    assert "".join(texts) == "Ada did [1]."
    ends = [one for one in chunks if one.choices and one.choices[0].finish_reason]
    assert [one.choices[0].finish_reason for one in ends] == ["stop"]
    (found,) = ends[0].choices[0].delta.model_extra["annotations"]  # type: ignore[index]
    assert found["url_citation"]["url"] == f"{url}/?source=ada.md#L3"
    assert chunks[-1].usage
    assert len({one.id for one in chunks}) == 1


def test_a_chat_is_continued_without_the_clients_prompts(tmp_path: Path) -> None:
    model = FakeChatModel(replies=["What is the engine?", "Ada did [1]."] * 5)
    earlier: list[Any] = [
        {"role": "system", "content": "Talk like a pirate."},
        *ASKED,
        {"role": "assistant", "content": "Ada Lovelace [1]."},
        {"role": "user", "content": [{"type": "text", "text": "And what is the engine?"}]},
    ]
    with serving(graphs(model=model), tmp_path) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
        with client:
            client.chat.completions.create(model="crag", messages=earlier)
    prompts = str(model.prompts)
    assert "Ada Lovelace" in prompts
    assert "pirate" not in prompts


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "messages: "),
        ([{"role": "assistant", "content": "I say."}], "the last one must be what the user asks"),
        # An earlier question is not asked again in the place of one that cannot be read.
        ([*ASKED, {"role": "user", "content": ""}], "question is empty"),
        ([*ASKED, {"role": "user", "content": [PICTURE]}], "question is empty"),
        ([{"role": "user", "content": "x" * 9000}], "the limit is 8,000"),
        ([{"role": ["user"], "content": "Why?"}], "the last one must be what the user asks"),
    ],
)
def test_what_cannot_be_asked_is_said(
    chatting: openai.OpenAI, messages: list[Any], words: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=words):
        chatting.chat.completions.create(model="crag", messages=messages)


def test_a_stream_that_fails_says_so(chatting: openai.OpenAI) -> None:
    asked: list[Any] = [{"role": "user", "content": "x" * 9000}]
    with pytest.raises(openai.APIError, match="the limit is 8,000"):
        list(chatting.chat.completions.create(model="crag", messages=asked, stream=True))


LEAVES: dict[str, Any] = {
    "whole": {"model": "crag", "messages": [{"role": "user", "content": "whole"}]},
    "streamed": {"model": "crag", "stream": True,
                 "messages": [{"role": "user", "content": "streamed"}]},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "crag", "arguments": {"question": "mcp"}}},
}  # fmt: skip


def test_a_client_that_leaves_ends_its_run(tmp_path: Path) -> None:
    accepted = {"Accept": "application/json, text/event-stream"}
    with serving({"crag": slow(0.6)}, tmp_path) as url:
        for question, body in LEAVES.items():
            path = "mcp" if question == "mcp" else "v1/chat/completions"
            with pytest.raises(httpx.ReadTimeout), httpx.Client(timeout=0.5) as client:
                client.post(f"{url}/{path}", json=body, headers=accepted)
        time.sleep(3.5)
    for question in LEAVES:
        assert BEGUN[f"{question} node0"]
        assert not BEGUN[f"{question} node4"]


def test_an_answer_that_was_cut_off_ends_by_its_length(tmp_path: Path) -> None:
    said = "Ada did [1]. It was changed every"
    message = AIMessage(said, response_metadata={"finish_reason": "length"})
    model = FakeMessagesListChatModel(responses=[message])
    with (
        serving(graphs(model=model), tmp_path) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client,
    ):
        (choice,) = client.chat.completions.create(model="crag", messages=ASKED).choices
    assert (choice.message.content, choice.finish_reason) == ("Ada did [1].", "length")


@pytest.mark.parametrize(
    "chore",
    [
        "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.",
        "### Task:\nSuggest 3-5 relevant follow-up questions",
        "Provide a concise, 5-word-or-less title for the conversation, using title case.",
        "Please generate a four to five word title summarizing our conversation. No punctuation.",
        "Summarize the discussion briefly in 200 words or less, as a prompt for future context.",
        "Based on the chat, give this conversation a name. Just provide the name, nothing else.",
        "Write a title for the following conversation:\nUser: Who wrote it?",
        "Give this chat a very short title.",
        "### Aufgabe:\nErstelle einen Titel\n### Verlauf:\n",
        "How to close the dialog that is titled Export and has a message of 5 words",
        "How do I give this conversation a title of 5 words in Slack?",
        "### Task:\nRespond to the user query using the provided context.\n\nWho wrote it?",
    ],
)
@pytest.mark.parametrize("role", ["user", "system"])
def test_chores_of_chat_clients_ask_no_documents(
    chatting: openai.OpenAI, chore: str, role: str
) -> None:
    asked: list[Any] = [{"role": role, "content": [{"type": "text", "text": chore}]}]
    asked += [{"role": "user", "content": "Who wrote it?"}] if role == "system" else []
    reply = chatting.chat.completions.create(model="crag", messages=asked)
    is_declined = reply.choices[0].message.content == "Untitled"
    assert is_declined == (not chore.startswith(("How", "### Task:\nRespond")))
    if not is_declined:
        return
    assert reply.usage
    assert reply.usage.total_tokens == 0


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
        f"Ada did [1].\n\nOutcome: answered.\n[1] Ada Lovelace, line 3: {url}/?source=ada.md#L3"
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
async def test_what_a_tool_cannot_be_asked_is_said(
    url: str, arguments: dict[str, Any], words: str
) -> None:
    result = await call(url, "crag", arguments)
    assert result.is_error
    assert words in result.content[0].text
