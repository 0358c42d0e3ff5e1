"""OpenAI's chat protocol: any chat client can use a corrected knowledge base.

A model is a graph. A reply is sent when it has been checked, also where it is streamed: a citation
may still be taken out of what a model has written, or a quotation put in its place, and what was
sent cannot be taken back.
"""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.answering.citations import marks_in
from crag.documents.sources import name_of
from crag.errors import CragError
from crag.serve.access import refusal
from crag.serve.conversations import HEARTBEAT, as_json

_HEADED = re.compile(r"\A\s*#{1,3} [^\n:]{1,20}:\s*\n(?!Respond to|Answer)")
"""What open-webui writes above a task, but not above a question with files."""
_INTRODUCTION = 800
"""Characters in which a task says what it is; the chat may stand behind."""
_CHORE = re.compile(
    r"\btitl(?:e|ing)\b|\btags?\b|follow-?up questions|\bemoji|summar|conversation a name",
    re.IGNORECASE,
)
_CHAT = re.compile(r"\bchat|conversation|discussion|dialog|message", re.IGNORECASE)
_SHORT = re.compile(
    r"concise|only the|\bonly\b.{0,20}\btitle|t(?:itle|ext) only|nothing else|punctuation|briefly"
    r"|very short|\d+[ -]words?\b|(?:a|five|ten)[ -]words?\b|\bjson\b|your task is"
    r"|following conversation", re.IGNORECASE,
)  # fmt: skip
"""What chat clients ask a model by themselves: to name, tag or continue the conversation. They say
how short it has to be, and ask nothing in the first line."""


class ChatRequest(BaseModel):
    """What of a request is read; what tunes a model, such as `temperature`, is ignored."""

    model: str
    """Name of a graph, such as crag."""
    messages: list[dict[str, Any]] = Field(min_length=1)
    """The chat; the last message is the question. Messages of the system are ignored, because the
    prompts are the server's."""
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None


async def models(request: Request) -> Response:
    """List the graphs."""
    told = [
        {"id": name, "object": "model", "created": 0, "owned_by": "crag"}
        for name in request.app.state.graphs
    ]
    return JSONResponse({"object": "list", "data": told})


async def chat_completions(request: Request) -> Response:
    """Answer the last message of a chat with all that user and assistant said before it."""
    asked = ChatRequest.model_validate_json(await request.body())
    graph, there = request.app.state.graphs.get(asked.model), ", ".join(request.app.state.graphs)
    if graph is None:
        raise HTTPException(404, f"there is no model {asked.model!r}; there are {there}")
    said = [one for one in asked.messages if str(one.get("role")) in {"user", "assistant"}]
    if not said or said[-1]["role"] != "user":
        raise HTTPException(400, "messages: the last one must be what the user asks")
    told = [one for one in asked.messages if one.get("role") == "system" and len(said) == 1]
    is_chore = any(_is_chore(_text_of(one)) for one in [*told, said[-1]])

    async def answer() -> Mapping[str, Any]:
        if is_chore:
            return {"answer": "Untitled"}
        return await final_state(graph, {"messages": said}, request)

    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": asked.model}
    if asked.stream:
        wants_usage = bool((asked.stream_options or {}).get("include_usage"))
        events = _streamed(answer, request, head, wants_usage=wants_usage)
        return EventSourceResponse(events, ping=HEARTBEAT)
    state = await answer()
    reason, usage = _ended(state)
    message = {"role": "assistant", "content": state["answer"], "refusal": None}
    choice = _choice(reason, message={**message, "annotations": annotations(state, request)})
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage})


ROUTES = [
    Route("/v1/models", models),
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
]


def _is_chore(text: str) -> bool:
    """Say whether a chat client asks this by itself, which is no question to documents."""
    text = text[:_INTRODUCTION]
    asks = "?" in text.strip().partition("\n")[0]
    told = all(pattern.search(text) for pattern in (_CHORE, _CHAT, _SHORT))
    return bool(_HEADED.match(text)) or (told and not asks)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


async def final_state(graph: Any, asked: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    """Return the state that a run of its own ends with; nothing is kept of it.

    It ends when its client goes away.
    """
    running: asyncio.Task[Mapping[str, Any]] = asyncio.create_task(graph.ainvoke(asked))
    try:
        while not (await asyncio.wait([running], timeout=1))[0]:
            if await request.is_disconnected():
                raise HTTPException(400, "the client has left")
        return await running
    finally:
        running.cancel()  # Once, and does nothing to one that has ended.


def sources_of(state: Mapping[str, Any], request: Request) -> dict[int, tuple[str, str]]:
    """Return title and address of each cited source by its number.

    A file of the index is shown by the page, at the cited lines.
    """
    documents = [one.metadata for one in state.get("documents") or []]
    roots = {str(one.get("source")): str(one.get("root") or "") for one in documents}
    sources = {}
    for citation in state.get("citations") or []:
        source, link = citation["source"], citation["source"]["url"]
        unit, _, place = source["position"].partition(" ")
        if not re.match(r"https?://", link, re.IGNORECASE):
            place = place and f"#{'L' if unit.startswith('line') else 'page='}{place}"
            link = f"{request.base_url}?source={quote(name_of(link, roots.get(link, '')))}{place}"
        title = ", ".join(filter(None, [source["title"] or source["id"], source["position"]]))
        sources[citation["number"]] = title, link
    return sources


def annotations(state: Mapping[str, Any], request: Request) -> list[dict[str, Any]]:
    """Return an annotation for each number cited, with the place of its mark in characters."""
    sources = sources_of(state, request)
    cited = [
        {"start_index": mark.bracket, "end_index": mark.end,
         "title": sources[number][0], "url": sources[number][1]}
        for mark in marks_in(state["answer"])
        for number in mark.numbers
        if number in sources
    ]  # fmt: skip
    return [{"type": "url_citation", "url_citation": one} for one in cited]


async def _streamed(
    answer: Callable[[], Awaitable[Mapping[str, Any]]],
    request: Request,
    head: Mapping[str, object],
    *,
    wants_usage: bool,
) -> AsyncIterator[ServerSentEvent]:
    def chunk(*choices: object, **more: object) -> ServerSentEvent:
        told = {**head, "object": "chat.completion.chunk", "choices": choices, **more}
        return ServerSentEvent(as_json(told).decode())

    try:
        yield chunk(_choice(delta={"role": "assistant", "content": ""}))
        state = await answer()
        reason, usage = _ended(state)
        yield chunk(_choice(delta={"content": state["answer"]}))
        yield chunk(_choice(reason, delta={"annotations": annotations(state, request)}))
        if wants_usage:
            yield chunk(usage=usage)
    except (CragError, HTTPException) as error:  # The answer has begun: no status can tell it.
        message = getattr(error, "detail", str(error))
        yield ServerSentEvent(bytes(refusal("/v1/", 500, message).body).decode())
    yield ServerSentEvent("[DONE]")


def _choice(reason: str | None = None, **said: object) -> dict[str, object]:
    return {"index": 0, "logprobs": None, "finish_reason": reason, **said}


def _ended(state: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """Return why a reply has ended, and what it used."""
    kinds, spent = {one["kind"] for one in state.get("events", ())}, state.get("usage", {})
    read, written = spent.get("input_tokens", 0), spent.get("output_tokens", 0)
    return "length" if kinds & {"reply_cut", "reflection_limited"} else "stop", {
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
    }  # fmt: skip
