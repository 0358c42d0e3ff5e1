"""The graphs as tools of the Model Context Protocol, at `/mcp`.

A tool answers as a person would want it: the answer, how sure it is, and the sources.
"""

import logging
from collections.abc import Mapping
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import Route

from crag.errors import CragError
from crag.graph_registry import GRAPHS, GraphEntry
from crag.serve.completions import final_state, sources_of

Question = Annotated[str, Field(min_length=1, description="One question, complete in itself.")]


def served(graphs: Mapping[str, Any]) -> tuple[StreamableHTTPSessionManager, list[Route]]:
    """Return what runs while the server does, and the route of the tools."""
    # It says of each request that it has begun and that it has ended.
    logging.getLogger(StreamableHTTPSessionManager.__module__).setLevel(logging.WARNING)
    server: MCPServer[Any] = MCPServer("crag", log_level="WARNING")
    for name, graph in graphs.items():
        _, title, description = GRAPHS.get(name, GraphEntry("", name, ""))
        server.add_tool(_tool(graph), name, title, description, structured_output=False)
    # Each request stands for itself; hosts and origins are checked for all routes.
    app = server.streamable_http_app(
        stateless_http=True, json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )  # fmt: skip
    endpoint: Any = app.routes[0]
    return server.session_manager, [Route("/mcp", endpoint.endpoint, methods=["POST"])]


def _tool(graph: Any) -> Any:
    async def answer(question: Question, context: Context[Any, Any]) -> Any:
        request: Any = context.request_context.request
        try:
            state = await final_state(graph, {"question": question.strip()}, request)
        except (CragError, HTTPException) as error:
            raise ToolError(getattr(error, "detail", str(error))) from error
        outcome = str(state["outcome"]).replace("_", " ")
        sources = sources_of(state, request).items()
        lines = (f"\n[{at}] {title}: {link}" for at, (title, link) in sources)
        return f"{state['answer']}\n\nOutcome: {outcome}.{''.join(lines)}"

    return answer
