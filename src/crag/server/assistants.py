"""The assistants: one for each graph, with an id that is the same in every process and for ever."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pydantic import TypeAdapter

from crag.graph_registry import GRAPHS
from crag.server.refusals import RefusedRequestError, not_found
from crag.server.streaming import Graph

_NAMESPACE = uuid5(NAMESPACE_URL, "https://github.com/corrective-rag/assistants")
_MADE = datetime(2025, 1, 1, tzinfo=UTC).isoformat()


class Assistants:
    """The graphs as clients see them."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self._graphs = graphs
        self._found = {str(uuid5(_NAMESPACE, name)): name for name in graphs}

    def search(self, graph_id: str | None = None) -> list[dict[str, Any]]:
        """Return all assistants, or those of one graph."""
        return [self.get(found) for found, name in self._found.items() if graph_id in {None, name}]

    def get(self, assistant_id: str) -> dict[str, Any]:
        """Return an assistant."""
        found, graph = self.resolve(assistant_id)
        return {
            "assistant_id": found,
            "graph_id": graph,
            "name": graph,
            "description": GRAPHS[graph].description if graph in GRAPHS else None,
            "config": {},
            "context": {},
            "metadata": {"created_by": "system"},
            "version": 1,
            "created_at": _MADE,
            "updated_at": _MADE,
        }

    def resolve(self, assistant_id: str) -> tuple[str, str]:
        """Return the id of an assistant and its graph, by the id or the name of the graph.

        Raises:
            RefusedRequestError: there is none; the message names the graphs.
        """
        if assistant_id in self._found:
            return assistant_id, self._found[assistant_id]
        for found, name in self._found.items():
            if name == assistant_id:
                return found, name
        if len(assistant_id) == len(next(iter(self._found))) and assistant_id.count("-") == 4:  # noqa: PLR2004
            not_found("Thread or assistant")
        detail = (
            f"Invalid assistant: {assistant_id[:100]!r}. It must be the id of an assistant, or one "
            f"of the graphs: {', '.join(self._graphs)}"
        )
        raise RefusedRequestError(422, detail)

    def graph(self, assistant_id: str) -> Graph:
        """Return the graph of an assistant."""
        return self._graphs[self.resolve(assistant_id)[1]]

    def drawn(self, assistant_id: str, *, xray: bool | int) -> dict[str, Any]:
        """Return nodes and edges, with those of the graphs within if `xray` says so."""
        return self.graph(assistant_id).get_graph(xray=xray).to_json()

    def schemas(self, assistant_id: str) -> dict[str, Any]:
        """Return the JSON schemas of what the graph takes, keeps and returns."""
        _, name = self.resolve(assistant_id)
        graph: Any = self._graphs[name]
        return {
            "graph_id": name,
            "input_schema": graph.get_input_jsonschema(),
            "output_schema": graph.get_output_jsonschema(),
            "state_schema": TypeAdapter(graph.builder.state_schema).json_schema(),
            "config_schema": {},
            "context_schema": graph.get_context_jsonschema(),
        }
