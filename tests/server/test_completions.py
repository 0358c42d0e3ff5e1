"""The server's OpenAI-compatible endpoint, used by OpenAI's own client."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.answering.test_links import FORMS, drawn
from tests.commands import crag
from tests.server.asking import GRAPHS, INCORRECT, QUESTION, QUICK
from tests.server.chat import ANSWER, SELF_CONTAINED, Chat
from tests.server.conftest import KEY
from tests.server.test_mcp import call, state_of

if TYPE_CHECKING:
    import openai

pytestmark = [pytest.mark.slow, pytest.mark.development]
SHOWN = ("answer", "outcome", "citations", "action")
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]
UNSET = {"stream": None, "stream_options": None, "n": None}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture(scope="module")
def chatting(url: str) -> Iterator["openai.OpenAI"]:
    import openai  # Here, as it takes most of a second in every worker that collects this file.

    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def told(folder: Path, chat: Chat) -> dict[str, Any]:
    """What `crag ask` says to the same question, with the same parts."""
    variables = {
        "CRAG_INDEX": str(folder / "index"),
        "CRAG_MODEL": "local",
        "CRAG_REFLECTION": "embedded",
        "OPENAI_BASE_URL": chat.url,
        "OPENAI_API_KEY": KEY,
    }
    done = crag("ask", QUESTION, "--json", environment=variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_graphs_are_models(chatting: "openai.OpenAI") -> None:
    assert {one.id for one in chatting.models.list()} == set(GRAPHS)


def test_a_client_asks_for_one_model_by_its_name(chatting: "openai.OpenAI", client: Any) -> None:
    import openai

    made = client.assistants.create("crag", name="crag/quick one", context=QUICK)
    try:
        for name in ("crag", "crag/quick one"):
            assert chatting.models.retrieve(name).id == name
    finally:
        client.assistants.delete(made["assistant_id"])
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4o'; there are crag"):
        chatting.models.retrieve("gpt-4o")


def lines_of(citation: dict[str, Any]) -> str:
    return str(citation["source"]["position"].partition(" ")[2])


async def test_each_client_shows_the_answer_certainty_and_sources_of_crag_ask(
    chatting: "openai.OpenAI", client: Any, told: dict[str, Any], url: str
) -> None:
    # Libraries send null for what is not set.
    reply = chatting.chat.completions.create(model="crag", messages=ASKED, extra_body=UNSET)
    (choice,) = reply.choices
    assert choice.message.content == told["answer"] == ANSWER
    assert choice.finish_reason == "stop"
    (found,) = choice.message.annotations or []
    (citation,) = told["citations"]
    assert found.url_citation.url == f"{url}/?source=action.md#L{lines_of(citation)}"
    where = slice(found.url_citation.start_index, found.url_citation.end_index)
    assert ANSWER[where] == f"[{citation['number']}]"
    extra: Any = reply.model_extra
    assert extra["crag"]["citations"] == told["citations"]
    assert extra["crag"]["action"] == told["action"] == "correct"
    assert reply.usage
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert extra["crag"]["outcome"] == told["outcome"] == "answered"
    traced = state_of(await call(url, "crag", {"question": QUESTION, "trace": True}))
    for state in (traced, client.runs.wait(None, "crag", input={"question": QUESTION})):
        assert {key: state[key] for key in SHOWN} == {key: told[key] for key in SHOWN}
    (short,) = (await call(url, "crag", {"question": QUESTION})).content
    answer, sure, source = (line for line in short.text.splitlines() if line)
    assert answer == told["answer"]
    assert sure == "Outcome: answered from the sources."
    assert source.startswith(f"[{citation['number']}] {citation['source']['title']}")
    assert source.endswith(found.url_citation.url)


def test_a_stream_has_the_same(chatting: "openai.OpenAI", told: dict[str, Any]) -> None:
    chunks = list(
        chatting.chat.completions.create(
            model="crag", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == told["answer"]
    ends = [one for one in chunks if one.choices and one.choices[0].finish_reason]
    assert [one.choices[0].finish_reason for one in ends] == ["stop"]
    (found,) = ends[0].choices[0].delta.model_extra["annotations"]  # type: ignore[index]
    assert found["url_citation"]["url"].endswith(
        f"/?source=action.md#L{lines_of(told['citations'][0])}"
    )
    assert chunks[-1].usage
    assert len({one.id for one in chunks}) == 1


@pytest.mark.parametrize("model", ["crag", "rag"])
def test_a_client_draws_no_picture_and_no_foreign_link(
    chatting: "openai.OpenAI", client: Any, chat: Chat, model: str
) -> None:
    quick = client.assistants.create(
        model, name=f"quick {model}", context={**QUICK, "require_citations": False}
    )
    try:
        for said in FORMS.values():
            with chat.saying(f"Then the action is Incorrect [1].\n\n{said}"):
                reply = chatting.chat.completions.create(model=quick["name"], messages=ASKED)
            content = reply.choices[0].message.content or ""
            assert content.startswith("Then the action is Incorrect [1].")
            assert [*drawn(content)] == []
    finally:
        client.assistants.delete(quick["assistant_id"])


def test_a_quotation_draws_no_picture(chatting: "openai.OpenAI", chat: Chat) -> None:
    asked: list[Any] = [{"role": "user", "content": "When was the harbour of Quellmoor dug?"}]
    with chat.saying(""):
        reply = chatting.chat.completions.create(model="crag", messages=asked)
    content = reply.choices[0].message.content or ""
    assert "1731" in content
    assert "“" in content
    assert [*drawn(content)] == []


def test_a_chat_is_continued(chatting: "openai.OpenAI", chat: Chat) -> None:
    earlier: list[Any] = [
        {"role": "system", "content": "Talk like a pirate."},
        *ASKED,
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": [{"type": "text", "text": "And when it is Ambiguous?"}]},
    ]
    before = len(chat.prompts)
    reply = chatting.chat.completions.create(model="rag", messages=earlier)
    assert "Ambiguous" in (reply.choices[0].message.content or "")
    assert any(SELF_CONTAINED in prompt for prompt in chat.prompts[before:])
    assert not any("pirate" in prompt for prompt in chat.prompts[before:])


def test_an_assistant_is_a_model_with_settings_of_its_own(
    chatting: "openai.OpenAI", client: Any
) -> None:
    made = client.assistants.create("crag", name="always the web", context=INCORRECT)
    try:
        assert "always the web" in {one.id for one in chatting.models.list()}
        reply = chatting.chat.completions.create(model="always the web", messages=ASKED)
        extra: Any = reply.model_extra
        assert extra["crag"]["action"] == "incorrect"
    finally:
        client.assistants.delete(made["assistant_id"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_is_not_there_is_named(chatting: "openai.OpenAI", *, stream: bool) -> None:
    import openai

    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4o'; there are crag"):
        chatting.chat.completions.create(model="gpt-4o", messages=ASKED, stream=stream)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "messages: "),
        ([{"role": "assistant", "content": "I say."}], "the last one must be what the user asks"),
        ([{"role": "user", "content": " "}], "the last one must be"),
        # An earlier question is not asked again in the place of one that cannot be read.
        ([*ASKED, {"role": "user", "content": ""}], "the last one must be"),
        ([*ASKED, {"role": "user", "content": [PICTURE]}], "the last one must be"),
        ([{"role": "user", "content": "x" * 9000}], "the limit is 8,000"),
    ],
)
def test_what_cannot_be_asked_is_said(
    chatting: "openai.OpenAI", messages: list[Any], words: str
) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match=words):
        chatting.chat.completions.create(model="crag", messages=messages)


def test_a_stream_that_fails_says_so(chatting: "openai.OpenAI") -> None:
    asked: list[Any] = [{"role": "user", "content": "x" * 9000}]
    import openai

    with pytest.raises(openai.APIError, match="the limit is 8,000"):
        list(chatting.chat.completions.create(model="crag", messages=asked, stream=True))


@pytest.mark.parametrize("door", ["whole", "stream", "mcp"])
def test_a_client_that_leaves_ends_its_run(url: str, client: Any, chat: Chat, door: str) -> None:
    arguments = {"name": "crag", "arguments": {"question": QUESTION}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    body = {"model": "crag", "messages": ASKED, "stream": door == "stream"}
    path, sent = ("mcp", call) if door == "mcp" else ("v1/chat/completions", body)
    takes = {"Accept": "application/json, text/event-stream"}
    with chat.held():
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/{path}", json=sent, headers=takes, timeout=4)
        assert chat.arrived.wait(1)
        end = time.monotonic() + 5
        while client.threads.search(status="busy"):
            assert time.monotonic() < end, "the run goes on"
            time.sleep(0.1)


def test_pages_of_other_sites_get_nothing(url: str) -> None:
    done = httpx.get(f"{url}/v1/models", headers={"Origin": "https://evil.example"})
    assert done.status_code == 403
