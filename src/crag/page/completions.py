"""OpenAI's chat protocol: any chat client can use a corrected knowledge base.

`/v1/models` lists the server's assistants, `/v1/models/NAME` tells of one, and
`/v1/chat/completions` runs one of them. A reply is sent when it has been checked, also where it is
streamed: a citation may still be taken out of what a model has written, or a quotation put in its
place, and what was sent cannot be taken back.
"""

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from crag.answering.citations import marks_in
from crag.documents.sources import name_of
from crag.page.leaving import unless_left
from crag.plain import problems

_KEEP_ALIVE = 10.0
"""Seconds between the comments that keep a waiting stream open."""
_TIMEOUT = 900.0
"""Seconds that a run may take."""
_PIECE = re.compile(r"\s*\S+")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_NO_CACHE = {"Cache-Control": "no-store"}


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

    model_config = ConfigDict(extra="ignore")

    model: str
    """Name of an assistant, such as crag."""
    messages: list[_Message] = Field(min_length=1)
    """The chat; the last message is the question. Messages of the system are ignored, because the
    prompts are the server's."""
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None

    def chat(self) -> list[dict[str, str]]:
        """Return what user and assistant said: texts, and the user's last message in any case."""
        last = next((one for one in reversed(self.messages) if one.role == "user"), None)
        return [
            {"role": one.role, "content": one.text}
            for one in self.messages
            if one.role in {"user", "assistant"} and (one is last or one.text.strip())
        ]


class RefusedChatError(Exception):
    """An error as OpenAI's clients read it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)

    def body(self) -> dict[str, Any]:
        """Return the JSON of the error."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"  # noqa: PLR2004
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.code}}


async def models(_: Request) -> Response:
    """List the assistants."""
    data = [_model(name) for name in await _assistants()]
    return JSONResponse({"object": "list", "data": data}, headers=_NO_CACHE)


async def model(request: Request) -> Response:
    """Tell of one assistant, which clients ask for before they use it."""
    name = request.path_params["name"]
    try:
        await _assistant(name)
    except RefusedChatError as refused:
        return JSONResponse(refused.body(), refused.status)
    return JSONResponse(_model(name), headers=_NO_CACHE)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "crag"}


async def chat_completions(request: Request) -> Response:
    """Answer the last message of a chat."""
    try:
        asked = await _read(request)
        assistant, chat = await _assistant(asked.model), {"messages": asked.chat()}
        base = str(request.base_url)
        if asked.stream:
            stream = _streamed(asked, asyncio.ensure_future(final_state(assistant, chat)), base)
            return StreamingResponse(stream, media_type="text/event-stream", headers=_NO_CACHE)
        state = await final_state(assistant, chat, request)
        return JSONResponse(_completion(asked, state, base), headers=_NO_CACHE)
    except RefusedChatError as refused:
        return JSONResponse(refused.body(), refused.status)


routes = [
    Route("/v1/models", models),
    Route("/v1/models/{name:path}", model),  # A name may have a slash.
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
]


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
    documents = [one["metadata"] for one in state.get("documents") or []]
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


async def _read(request: Request) -> ChatRequest:
    try:
        asked = ChatRequest.model_validate_json(await request.body())
    except ValidationError as error:
        raise RefusedChatError(400, "invalid_value", problems(error)) from None
    last = (asked.chat() or [{}])[-1]
    if last.get("role") != "user" or not last["content"].strip():
        message = "messages: the last one must be what the user asks"
        raise RefusedChatError(400, "invalid_value", message)
    return asked


def client() -> Any:
    """Return a client of the server that this process is."""
    from langgraph_sdk import get_client

    return get_client(url=None, api_key=None, timeout=_TIMEOUT)


async def _assistants() -> dict[str, str]:
    """Return the assistants' ids by name, those of the graphs first."""
    found = await client().assistants.search(limit=1000)
    own = [one for one in found if one["metadata"].get("created_by") == "system"]
    ids = {one["graph_id"]: one["assistant_id"] for one in own}
    added = {one["name"]: one["assistant_id"] for one in found if one not in own}
    return dict(sorted(ids.items())) | {name: added[name] for name in sorted(added.keys() - ids)}


async def _assistant(model: str) -> str:
    assistants = await _assistants()
    if model not in assistants:
        message = f"there is no model {model!r}; there are {', '.join(assistants)}"
        raise RefusedChatError(404, "model_not_found", message)
    return assistants[model]


async def final_state(
    assistant: str, asked: Mapping[str, Any], request: Request | None = None
) -> Mapping[str, Any]:
    """Ask an assistant, and return the state that its run ends with.

    The run ends when the client of `request` leaves; a stream ends by itself then, and its run too.

    Raises:
        RefusedChatError: the question cannot be asked, the run failed, it waits for a human, or
            nobody waits for it any more.
    """
    waiting = client().runs.wait(
        None, assistant, input=asked, raise_error=False, on_disconnect="cancel"
    )
    try:
        state = await (waiting if request is None else unless_left(request, waiting))
    except ClientDisconnect:
        raise RefusedChatError(499, "left", "the client has left") from None
    if failed := state.get("__error__"):
        is_theirs = failed.get("error") in {"QuestionError", "SettingsError"}
        status, code = (400, "invalid_value") if is_theirs else (500, "run_failed")
        raise RefusedChatError(status, code, str(failed.get("message") or failed.get("error")))
    if "__interrupt__" in state or state.get("answer") is None:
        message = "the run waits for a human: use an assistant whose confirm_web is off"
        raise RefusedChatError(409, "interrupted", message)
    return dict(state)


def _completion(asked: ChatRequest, state: Mapping[str, Any], base: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": state["answer"], "refusal": None}
    message["annotations"] = annotations(state, base)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _head(asked, "chat.completion") | {
        "choices": [choice],
        "usage": _usage(state),
        "crag": _told(state),
    }


async def _streamed(
    asked: ChatRequest, answering: "asyncio.Future[Mapping[str, Any]]", base: str
) -> AsyncIterator[str]:
    head = _head(asked, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event(head | {"choices": [choice]} | more)

    try:
        yield chunk({"role": "assistant", "content": ""})
        while not (await asyncio.wait([answering], timeout=_KEEP_ALIVE))[0]:
            yield ": the run goes on\n\n"
        state = await answering
        for piece in _PIECE.findall(state["answer"]):
            yield chunk({"content": piece})
        yield chunk({"annotations": annotations(state, base)}, "stop", crag=_told(state))
        if asked.stream_options and asked.stream_options.include_usage:
            yield _event(head | {"choices": [], "usage": _usage(state)})
    except RefusedChatError as refused:
        yield _event(refused.body())
    finally:
        answering.cancel()  # Does nothing to one that has ended.
    yield "data: [DONE]\n\n"


def _head(asked: ChatRequest, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": asked.model,
    }


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _usage(state: Mapping[str, Any]) -> dict[str, int]:
    spent = state.get("usage") or {}
    read, written = int(spent.get("input_tokens", 0)), int(spent.get("output_tokens", 0))
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


def _told(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the protocol has no place for."""
    names = ("action", "abstained", "outcome", "citations", "sentences", "further", "events")
    return {name: state.get(name) for name in names}


def title_of(source: Mapping[str, str]) -> str:
    """Return the title of a source, with the place in it."""
    return ", ".join(filter(None, [source["title"] or source["id"], source["position"]]))
