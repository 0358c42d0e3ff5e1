"""The graphs as tools of the Model Context Protocol, at `/mcp`.

A tool answers as a person would want it: the answer, how sure it is, and the sources; the whole
state comes where a call asks for the trace.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import mcp.types as protocol
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from crag.errors import CragError
from crag.graph_registry import OFFERED
from crag.plain import problems
from crag.serve.completions import final_state, link_to, roots_of, title_of, unless_left
from crag.serve.conversations import as_json
from crag.text.marks import as_mark

LONGEST = 3900
"""Characters of a result without the trace."""
_LONGEST_ANSWER = 2800
OUTCOMES: Mapping[str, str] = {
    "answered": "answered from the sources",
    "likely": "these passages are likely to answer",
    "not_found": "nothing found",
    "nothing_asked": "nothing was asked",
}
"""How a client is told of each outcome of `crag.state`."""
# It says of each request that it has begun and that it has ended.
logging.getLogger(StreamableHTTPSessionManager.__module__).setLevel(logging.WARNING)


class Arguments(BaseModel):
    """What a tool takes."""

    model_config = ConfigDict(extra="forbid")

    question: StrictStr = Field(
        min_length=1, description="One complete question that can be understood on its own."
    )
    trace: StrictBool = Field(
        default=False,
        description="Whether to add the whole state: documents, scores, strips.",
    )


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request, which stands for itself: nothing is kept from one to the next."""
    server: Server[Any] = Server("crag", on_list_tools=_listed, on_call_tool=_called)
    sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with sessions.run():
        await sessions.handle_request(scope, receive, send)


async def _listed(context: ServerRequestContext[Any], _: object) -> protocol.ListToolsResult:
    request: Any = context.request
    schema, tools = Arguments.model_json_schema(), []
    for name in request.app.state.graphs:
        entry = OFFERED.get(name)
        title, description = (entry.title, entry.description) if entry else (name, f"Asks {name}.")
        tools.append(
            protocol.Tool(name=name, title=title, description=description, input_schema=schema)
        )
    return protocol.ListToolsResult(tools=tools)


async def _called(
    context: ServerRequestContext[Any], asked: protocol.CallToolRequestParams
) -> protocol.CallToolResult:
    request: Any = context.request
    graphs = request.app.state.graphs
    if asked.name not in graphs:
        message = f"there is no tool {asked.name!r}; there are {', '.join(graphs)}"
        raise MCPError(protocol.INVALID_PARAMS, message)
    try:
        wanted = Arguments.model_validate(asked.arguments or {})
        running = final_state(graphs[asked.name], {"question": wanted.question.strip()})
        state = await unless_left(request, asyncio.ensure_future(running))
    except ValidationError as error:
        return _result(problems(error), error=True)
    except HTTPException as error:
        return _result(error.detail, error=True)
    except CragError as error:
        return _result(str(error), error=True)
    text = told(state, str(request.base_url))
    return _result(text, json.loads(as_json(state)) if wanted.trace else None)


def _result(
    text: str, state: Mapping[str, Any] | None = None, *, error: bool = False
) -> protocol.CallToolResult:
    content: list[protocol.ContentBlock] = [protocol.TextContent(text=text)]
    return protocol.CallToolResult(content=content, structured_content=state, is_error=error)


def told(state: Mapping[str, Any], base: str) -> str:
    """Return the answer, how sure it is and its sources, in at most `LONGEST` characters.

    Files are linked on the page at `base`.
    """
    answer, outcome = state["answer"], str(state.get("outcome") or "")
    if len(answer) > _LONGEST_ANSWER:
        rest = len(answer) - _LONGEST_ANSWER
        answer = f"{answer[:_LONGEST_ANSWER]}… ({rest:,} more characters: ask with `trace`)"
    lines = [answer, "", *([f"Outcome: {OUTCOMES.get(outcome, outcome)}."] if outcome else [])]
    roots, citations = roots_of(state), state.get("citations") or []
    for at, citation in enumerate(citations):
        source = citation["source"]
        line = f"{as_mark(citation['number'])} {title_of(source)}: {link_to(source, roots, base)}"
        more = f"and {len(citations) - at} more sources: ask with `trace`"
        if len("\n".join([*lines, line, more])) > LONGEST:
            lines.append(more)
            break
        lines.append(line)
    return "\n".join(lines).rstrip()
