"""The assistants as tools of the Model Context Protocol, at `/mcp`.

LangGraph's own endpoint answers with the whole state as a Python literal. This one takes its place,
and answers as a person would want it: the answer, how sure it is, and the sources; the whole state
comes where a call asks for the trace.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

import mcp.types as protocol
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from crag.page.completions import RefusedChatError, client, final_state, link_to, roots_of, title_of
from crag.text.marks import as_mark

LONGEST = 3900
"""Characters of a result without the trace."""
_LONGEST_ANSWER = 2800
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "description": "One complete question that can be understood on its own.",
        },
        "trace": {
            "type": "boolean",
            "default": False,
            "description": "Whether to add the whole state: documents, scores, what was kept.",
        },
    },
    "required": ["question"],
    "additionalProperties": False,
}
OUTCOMES: Mapping[str, str] = {
    "answered": "answered from the sources",
    "likely": "these passages are likely to answer",
    "not_found": "nothing found",
    "nothing_asked": "nothing was asked",
}
"""How a client is told of each outcome of `crag.state`."""
# It says of each request that it has begun and that it has ended.
logging.getLogger(StreamableHTTPSessionManager.__module__).setLevel(logging.WARNING)


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request, which stands for itself: nothing is kept from one to the next."""
    server: Server[Any] = Server("crag", on_list_tools=_listed, on_call_tool=_called)
    sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with sessions.run():
        await sessions.handle_request(scope, receive, send)


async def _assistants() -> dict[str, Mapping[str, Any]]:
    """Return the assistants by the names of their tools; of two with one name, the older one."""
    found = await client().assistants.search(limit=1000, sort_by="created_at", sort_order="desc")
    return {re.sub(r"[^\w.-]+", "_", one["name"], flags=re.ASCII)[:128]: one for one in found}


async def _listed(_: ServerRequestContext[Any], __: object) -> protocol.ListToolsResult:
    tools = [
        protocol.Tool(
            name=name,
            title=one["name"],
            description=one.get("description") or f"Answers questions with {one['graph_id']}.",
            input_schema=dict(_SCHEMA),
        )
        for name, one in sorted((await _assistants()).items())
    ]
    return protocol.ListToolsResult(tools=tools)


async def _called(
    context: ServerRequestContext[Any], asked: protocol.CallToolRequestParams
) -> protocol.CallToolResult:
    assistants = await _assistants()
    if asked.name not in assistants:
        known = ", ".join(sorted(assistants))
        raise MCPError(protocol.INVALID_PARAMS, f"Unknown tool: {asked.name}; there are {known}")
    arguments = asked.arguments or {}
    if unknown := arguments.keys() - _SCHEMA["properties"].keys():
        names = ", ".join(f"`{name}`" for name in sorted(unknown))
        taken = " and ".join(f"`{name}`" for name in _SCHEMA["properties"])
        return _result(f"A tool takes {taken}, and no {names}.", error=True)
    question, trace = arguments.get("question") or "", arguments.get("trace", False)
    if not isinstance(question, str) or not question.strip():
        return _result("Nothing was asked: put a text into the argument `question`.", error=True)
    if not isinstance(trace, bool):
        return _result("`trace` is true or false, not a text or a number.", error=True)
    try:
        assistant = assistants[asked.name]["assistant_id"]
        asked_for = {"question": question.strip()}
        state = await final_state(assistant, asked_for, context.request)
    except RefusedChatError as refused:
        return _result(refused.message, error=True)
    base = str(context.request.base_url) if context.request else "/"
    return _result(told(state, base), state if trace else None)


def _result(
    text: str, state: Mapping[str, Any] | None = None, *, error: bool = False
) -> protocol.CallToolResult:
    content: list[protocol.ContentBlock] = [protocol.TextContent(text=text)]
    return protocol.CallToolResult(content=content, structured_content=state, is_error=error)


def told(state: Mapping[str, Any], base: str) -> str:
    """Return the answer, how sure it is and its sources, in at most `LONGEST` characters.

    Files are linked on the page at `base`.
    """
    answer, sure = state["answer"], str(state.get("outcome") or "")
    if len(answer) > _LONGEST_ANSWER:
        rest = len(answer) - _LONGEST_ANSWER
        answer = f"{answer[:_LONGEST_ANSWER]}… ({rest:,} more characters: ask with `trace`)"
    # A graph of others may tell none.
    lines = [answer, "", *([f"Outcome: {OUTCOMES.get(sure, sure)}."] if sure else [])]
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
