"""OpenAI's chat protocol: any chat client can use a corrected knowledge base.

A model is a graph. A reply is sent when it has been checked, also where it is streamed: a citation
may still be taken out of what a model has written, or a quotation put in its place, and what was
sent cannot be taken back.
"""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.answering.citations import marks_in
from crag.documents.sources import name_of
from crag.serve.access import refusal
from crag.serve.conversations import as_json

HEARTBEAT = 10
"""Seconds between the comments that keep a waiting stream open."""
_PIECE = re.compile(r"\s*\S+")
_WEB = re.compile(r"https?://", re.IGNORECASE)


class _Part(BaseModel):
    type: str
    text: str = ""


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        parts = self.content or ""
        if isinstance(parts, str):
            return parts
        return "\n".join(part.text for part in parts if part.type == "text")


class _StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """What of a request is read; what tunes a model, such as `temperature`, is ignored."""

    model: str
    """Name of a graph, such as crag."""
    messages: list[_Message] = Field(min_length=1)
    """The chat; the last message is the question. Messages of the system are ignored, because the
    prompts are the server's."""
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None

    def chat(self) -> list[dict[str, str]]:
        """Return what user and assistant said, which ends with a question.

        Raises:
            HTTPException: it ends with something else.
        """
        said = [one for one in self.messages if one.role in {"user", "assistant"}]
        if not said or said[-1].role != "user" or not said[-1].text.strip():
            raise HTTPException(400, "messages: the last one must be what the user asks")
        return [{"role": one.role, "content": one.text} for one in said if one.text.strip()]


async def models(request: Request) -> Response:
    """List the graphs."""
    data = [_model(name) for name in request.app.state.graphs]
    return JSONResponse({"object": "list", "data": data})


async def model(request: Request) -> Response:
    """Tell of one graph, which clients ask for before they use it."""
    name = request.path_params["name"]
    _graph(request, name)
    return JSONResponse(_model(name))


async def chat_completions(request: Request) -> Response:
    """Answer the last message of a chat."""
    asked = ChatRequest.model_validate_json(await request.body())
    graph = _graph(request, asked.model)
    answering = asyncio.ensure_future(final_state(graph, {"messages": asked.chat()}))
    base = str(request.base_url)
    if asked.stream:
        return EventSourceResponse(_streamed(asked, answering, base), ping=HEARTBEAT)
    return JSONResponse(_completion(asked, await unless_left(request, answering), base))


ROUTES = [
    Route("/v1/models", models),
    Route("/v1/models/{name}", model),
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
]


async def final_state(graph: Any, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state that a run of its own ends with; nothing is kept of it.

    Raises:
        HTTPException: it waits for a human.
        CragError: the question cannot be asked.
    """
    state: Mapping[str, Any] = await graph.ainvoke(asked)
    if "__interrupt__" in state or state.get("answer") is None:
        raise HTTPException(409, "the run waits for a human, whom this protocol cannot ask")
    return state


def _graph(request: Request, name: str) -> Any:
    graphs = request.app.state.graphs
    if name not in graphs:
        raise HTTPException(404, f"there is no model {name!r}; there are {', '.join(graphs)}")
    return graphs[name]


async def unless_left(
    request: Request | None, answering: "asyncio.Future[Mapping[str, Any]]"
) -> Mapping[str, Any]:
    """Wait for an answer; it is cancelled, once, when the client of `request` leaves.

    Raises:
        HTTPException: the client has left.
    """
    try:
        while not (await asyncio.wait([answering], timeout=1))[0]:
            if request and await request.is_disconnected():
                raise HTTPException(499, "the client has left")
        return await answering
    finally:
        answering.cancel()  # Does nothing to one that has ended.


def annotations(state: Mapping[str, Any], base: str) -> list[dict[str, Any]]:
    """Return an annotation for each number cited, with the place of its mark in characters.

    A file of the index is linked on the page at `base`, which opens it at the cited lines.
    """
    sources = {one["number"]: one["source"] for one in state.get("citations") or []}
    roots = roots_of(state)
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": mark.bracket,
                "end_index": mark.end,
                "url": link_to(sources[number], roots, base),
                "title": title_of(sources[number]),
            },
        }
        for mark in marks_in(state["answer"])
        for number in mark.numbers
        if number in sources
    ]


def roots_of(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders that were indexed by the paths of the documents of a state."""
    documents = [one.metadata for one in state.get("documents") or []]
    return {str(one.get("source")): str(one.get("root") or "") for one in documents}


def link_to(source: Mapping[str, str], roots: Mapping[str, str], base: str) -> str:
    """Return the address of a source: on the web, or on the page at `base` at its first line.

    `roots` are the folders that were indexed, by the path of the file.
    """
    url = source["url"]
    if _WEB.match(url):
        return url
    unit, _, numbers = source["position"].partition(" ")
    place = f"#{'L' if unit.startswith('line') else 'page='}{numbers}" if numbers else ""
    return f"{base}?source={quote(name_of(url, roots.get(url, '')))}{place}"


def title_of(source: Mapping[str, str]) -> str:
    """Return the title of a source, with the place in it."""
    return ", ".join(filter(None, [source["title"] or source["id"], source["position"]]))


async def _streamed(
    asked: ChatRequest, answering: "asyncio.Future[Mapping[str, Any]]", base: str
) -> AsyncIterator[ServerSentEvent]:
    head = _head(asked, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event(head | {"choices": [choice]} | more)

    try:
        yield chunk({"role": "assistant", "content": ""})
        state = await unless_left(None, answering)
        for piece in _PIECE.findall(state["answer"]):
            yield chunk({"content": piece})
        yield chunk({"annotations": annotations(state, base)}, "stop", crag=_told(state))
        if asked.stream_options and asked.stream_options.include_usage:
            yield _event(head | {"choices": [], "usage": _usage(state)})
    except Exception as error:  # noqa: BLE001 - the answer has begun: the status cannot tell any more.
        yield ServerSentEvent(bytes(refusal("/v1/", 500, str(error)).body).decode())
    yield ServerSentEvent("[DONE]")


def _event(value: Mapping[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(as_json(value).decode())


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "crag"}


def _completion(asked: ChatRequest, state: Mapping[str, Any], base: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": state["answer"], "refusal": None}
    message["annotations"] = annotations(state, base)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    told = {"choices": [choice], "usage": _usage(state), "crag": _told(state)}
    return _head(asked, "chat.completion") | told


def _head(asked: ChatRequest, kind: str) -> dict[str, Any]:
    identity = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind}
    return identity | {"created": int(time.time()), "model": asked.model}


def _usage(state: Mapping[str, Any]) -> dict[str, int]:
    spent = state.get("usage") or {}
    read, written = int(spent.get("input_tokens", 0)), int(spent.get("output_tokens", 0))
    total = read + written
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": total}


def _told(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the protocol has no place for."""
    names = ("action", "outcome", "citations", "sentences", "events")
    return {name: state.get(name) for name in names}
