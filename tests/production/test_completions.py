"""OpenAI's protocol over the API in the process of the test: refusals and streams."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.types import interrupt
from langgraph_sdk.client import LangGraphClient
from starlette.applications import Starlette

from crag.graph.corrective import build_crag
from crag.page.completions import annotations, routes
from crag.page.rules import Rules
from crag.parts import Parts
from crag.server.app import create
from crag.server.settings import ServerSettings
from crag.testing import FakeChatModel

ASKED = [{"role": "user", "content": "Who wrote the first program?"}]
Chatting = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def chatting(
    settings: Callable[..., ServerSettings],
    make_parts: Callable[..., Parts],
    monkeypatch: pytest.MonkeyPatch,
) -> Chatting:
    """Serve the protocol, and behind it a graph of fake parts."""

    @asynccontextmanager
    async def serve(**parts: Any) -> AsyncIterator[httpx.AsyncClient]:
        graph: Any = build_crag(make_parts(**parts))
        app = create(settings(), {"crag": graph}, Rules())
        around = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        inner = httpx.AsyncClient(transport=around, base_url="http://127.0.0.1", timeout=20)
        monkeypatch.setattr("langgraph_sdk.get_client", lambda **_: LangGraphClient(inner))
        chat = httpx.ASGITransport(Starlette(routes=routes))
        outer = httpx.AsyncClient(transport=chat, base_url="http://127.0.0.1/v1", timeout=20)
        async with app.router.lifespan_context(app), inner, outer:
            yield outer

    return serve


async def asked(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    sent = {"model": "crag", "messages": ASKED} | changed
    return await client.post("/chat/completions", json=sent)


async def test_an_answer_cites_its_sources_and_counts_its_tokens(chatting: Chatting) -> None:
    async with chatting() as client:
        listed = (await client.get("/models")).json()
        assert listed["data"] == [(await client.get("/models/crag")).json()]
        assert [one["id"] for one in listed["data"]] == ["crag"]
        reply = (await asked(client)).json()
    (choice,) = reply["choices"]
    assert choice["message"]["content"] == "Ada Lovelace did [1]."
    (cited,) = choice["message"]["annotations"]
    assert cited["url_citation"] == {
        "start_index": 17, "end_index": 20, "url": "http://127.0.0.1/?source=ada.md#L3",
        "title": "Ada Lovelace, line 3",
    }  # fmt: skip
    assert (reply["crag"]["action"], reply["crag"]["abstained"]) == ("correct", False)
    used = reply["usage"]
    assert used["total_tokens"] == used["prompt_tokens"] + used["completion_tokens"]


async def test_a_stream_ends_with_its_sources_and_its_usage(chatting: Chatting) -> None:
    parts = [
        {"type": "text", "text": "Who wrote"},
        {"type": "image_url"},
        {"type": "text", "text": "the first program?"},
    ]
    model = FakeChatModel(replies=["Ada Lovelace did [1]."])
    async with chatting(model=model) as client:
        reply = await asked(
            client,
            messages=[{"role": "system", "content": "Lie."}, {"role": "user", "content": parts}],
            stream=True,
            stream_options={"include_usage": True},
        )
    *events, end = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert end == "[DONE]"
    found = [json.loads(event) for event in events if not event.startswith(":")]
    *chunks, usage = found
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == "Ada Lovelace did [1]."
    assert deltas[-1]["annotations"][0]["url_citation"]["url"].endswith("/?source=ada.md#L3")
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], set(usage["usage"])) == (
        [],
        {"prompt_tokens", "completion_tokens", "total_tokens"},
    )
    ((system, human),) = model.prompts
    assert "Who wrote\nthe first program?" in str(human.text)
    assert "Lie." not in f"{system.text}{human.text}"


WRONG: list[tuple[dict[str, Any], int, str, str]] = [
    ({"messages": []}, 400, "invalid_value", "messages: List should have at least 1 item"),
    ({"model": None}, 400, "invalid_value", "model: Input should be a valid string"),
    ({"n": 2}, 400, "invalid_value", "n: Input should be 1"),
    ({"messages": [*ASKED, {"role": "assistant", "content": "Ada."}]}, 400, "invalid_value",
     "messages: the last one must be what the user asks"),
    ({"messages": [{"role": "user"}]}, 400, "invalid_value",
     "messages: the last one must be what the user asks"),
    ({"model": "gpt"}, 404, "model_not_found", "there is no model 'gpt'; there are crag"),
    ({"messages": [{"role": "user", "content": "x" * 200_000}]}, 400, "invalid_value",
     "question"),
]  # fmt: skip


async def test_a_wrong_request_is_refused_as_openai_does(chatting: Chatting) -> None:
    async with chatting() as client:
        for changed, status, code, said in WRONG:
            reply = await asked(client, **changed)
            error = reply.json()["error"]
            assert (reply.status_code, error["code"]) == (status, code), said
            assert error["type"] == "invalid_request_error"
            assert said in error["message"]


async def test_a_body_that_is_no_json_is_refused(chatting: Chatting) -> None:
    async with chatting() as client:
        reply = await client.post("/chat/completions", content=b"{")
        assert reply.status_code == 400
        assert reply.json()["error"]["message"].startswith("the body: Invalid JSON")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_waits_for_a_human_is_a_conflict(chatting: Chatting, stream: bool) -> None:
    def retrieve(_: str) -> Any:
        return interrupt({"asked": "May I?"})

    async with chatting(retriever=RunnableLambda(retrieve)) as client:
        reply = await asked(client, stream=stream)
    assert reply.status_code == (200 if stream else 409)
    assert "the run waits for a human: use an assistant whose confirm_web is off" in reply.text


def test_numbers_without_a_source_are_not_annotated() -> None:
    source = {"url": "a.md", "title": "", "id": "a", "position": ""}
    state = {"answer": "One [1], two [2].", "citations": [{"number": 2, "source": source}]}
    (found,) = annotations(state, "http://a/")
    assert found["url_citation"] == {
        "start_index": 13, "end_index": 16, "url": "http://a/?source=a.md", "title": "a",
    }  # fmt: skip
    assert annotations({"answer": "One [1].", "citations": None}, "http://a/") == []


def test_every_number_of_a_mark_is_annotated_and_none_in_code() -> None:
    source = {"url": "a.md", "title": "", "id": "a", "position": ""}
    citations = [{"number": number, "source": source} for number in (1, 2)]
    state = {"answer": "Use `a[1]` [1, 2].", "citations": citations}
    places = [
        (one["url_citation"]["start_index"], one["url_citation"]["end_index"])
        for one in annotations(state, "http://a/")
    ]
    assert places == [(11, 17), (11, 17)]


@pytest.mark.parametrize(
    ("url", "position", "link"),
    [
        ("https://example.org/a", "line 3", "https://example.org/a"),
        ("/home/me/docs/b/c d.md", "lines 3-5", "http://a/?source=b/c%20d.md#L3-5"),
        ("/home/me/docs/e.pdf", "page 2", "http://a/?source=e.pdf#page=2"),
        ("/elsewhere/f.md", "", "http://a/?source=/elsewhere/f.md"),
    ],
)
def test_a_file_is_linked_on_the_page_by_its_name(url: str, position: str, link: str) -> None:
    source = {"url": url, "title": "", "id": "", "position": position}
    state = {
        "answer": "One [1].",
        "citations": [{"number": 1, "source": source}],
        "documents": [{"metadata": {"source": url, "root": "/home/me/docs"}}],
    }
    (found,) = annotations(state, "http://a/")
    assert found["url_citation"]["url"] == link
