"""Chat models by name, against an OpenAI-compatible server on loopback."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from crag.answering.model_calls import aask, ask
from crag.errors import MissingPackageError, ModelError
from crag.generation import load_chat_model
from tests.loopback import Loopback, completion, serving


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(completion("Ada [1].", (7, 3))) as running:
        running.failure = {"error": {"message": "Incorrect API key provided: sk-secret-12345"}}
        yield running


@pytest.fixture(params=["ask", "aask"])
async def reply(request: pytest.FixtureRequest, server: Loopback) -> Any:
    """Return what asks the server in one of the two ways."""

    async def asked(**options: Any) -> Any:
        made = load_chat_model("local", base_url=f"{server.url}/v1", **({"retries": 0} | options))
        return ask(made, []) if request.param == "ask" else await aask(made, [])

    return asked


async def test_a_server_of_ones_own_needs_no_key(server: Loopback, reply: Any) -> None:
    said = await reply()
    assert (said.text, said.problem) == ("Ada [1].", None)
    assert said.usage == {"llm_calls": 1, "input_tokens": 7, "output_tokens": 3}
    assert server.requests[0]["path"] == "/v1/chat/completions"
    assert set(server.requests[0]) - {"path", "authorization", "headers"} == {
        "model", "messages", "stream",
    }  # fmt: skip


async def test_an_invalid_key_is_not_tried_again(server: Loopback, reply: Any) -> None:
    server.statuses = [401, 401]
    said = await reply(retries=2)
    assert said.problem == "failed"
    assert len(server.requests) == 1


async def test_a_server_error_is_tried_again(server: Loopback, reply: Any) -> None:
    server.statuses = [500]
    assert (await reply(retries=1)).text == "Ada [1]."
    assert len(server.requests) == 2


async def test_no_answer_in_time(server: Loopback, reply: Any) -> None:
    server.seconds = 5
    said = await reply(timeout=0.05)
    assert said.problem == "failed"
    assert "Timeout" in type(said.detail).__name__


async def test_a_refusal_and_silence_are_no_answers(server: Loopback, reply: Any) -> None:
    server.body = completion(None, refusal="I cannot help with that")
    said = await reply()
    assert said.problem == "refused"
    assert "I cannot help" in said.detail
    server.body = completion("")
    assert (await reply()).problem == "empty"


@pytest.mark.parametrize(
    ("ends", "text", "refused"),
    [
        ([({}, 10), ({}, 10)], "Ada", False),
        ([({"content": " did"}, 4), (None, 10)], "Ada did", False),
        ([({"refusal": "I"}, 9), ({"refusal": " will not"}, 10)], "", True),
    ],
)
def test_a_stream_counts_its_tokens_once_and_tells_a_refusal(
    server: Loopback, ends: list[Any], text: str, refused: bool
) -> None:
    pieces = [({"content": "Ada"}, None), *ends]
    chunks = [
        {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
         "choices": [{"index": 0, "delta": delta, "finish_reason": count and "stop"}],
         "usage": count and {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 9}}
        for delta, count in pieces
    ]  # fmt: skip
    server.body = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks).encode()
    model = load_chat_model("local", base_url=f"{server.url}/v1").bind(stream=True)
    reply = ask(model, [])
    assert (reply.text, reply.problem) == (text, "refused" if refused else None)
    assert reply.usage == {"llm_calls": 1, "input_tokens": 7, "output_tokens": 10}


def test_a_key_or_a_server_is_needed() -> None:
    with pytest.raises(ModelError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        load_chat_model("gpt-4o-mini")
    with pytest.raises(ModelError, match="give it a name"):
        load_chat_model(" ")


def test_the_key_is_not_shown() -> None:
    made = load_chat_model("gpt-4o-mini", api_key="sk-very-secret-key")
    assert "very-secret" not in repr(made) + str(made)


def test_another_provider_names_the_package_to_install() -> None:
    with pytest.raises(MissingPackageError, match=r"pip install langchain-anthropic$"):
        load_chat_model("anthropic:claude")


def test_a_provider_of_langchain_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"model": "m", "message": {"role": "assistant", "content": "ready"}, "done": True}
    with serving(said) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert load_chat_model("ollama:tiny").invoke("Are you?").content == "ready"
        assert server.requests[0]["path"] == "/api/chat"


def test_a_provider_needs_langchain_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingPackageError, match=r"the model 'ollama:x' needs .*'langchain'"):
        load_chat_model("ollama:x")
