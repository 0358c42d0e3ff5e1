"""The assistants: one for each graph, with an id that is the same in every process and for ever."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from crag.graph_registry import GRAPHS
from crag.server.bodies import AssistantSearch
from crag.server.replies import RefusedRequestError, not_found

Assistant = dict[str, Any]
_NAMESPACE = uuid5(NAMESPACE_URL, "https://github.com/corrective-rag/assistants")
_MADE = datetime(2025, 1, 1, tzinfo=UTC).isoformat()
_INVALID = "Invalid assistant: {!r}. It must be the id of an assistant, or one of the graphs: {}"


class Assistants:
    """The graphs as clients see them."""

    def __init__(self, graphs: Iterable[str]) -> None:
        self._all: list[Assistant] = [
            {
                "assistant_id": str(uuid5(_NAMESPACE, name)),
                "graph_id": name,
                "name": name,
                "description": GRAPHS[name].description if name in GRAPHS else None,
                "config": {},
                "context": {},
                "metadata": {"created_by": "system"},
                "version": 1,
                "created_at": _MADE,
                "updated_at": _MADE,
            }
            for name in graphs
        ]

    def search(self, asked: AssistantSearch) -> list[Assistant]:
        """Return all assistants, or those of one graph, with these metadata or `name` in theirs."""
        part, wanted = asked.name.lower(), asked.metadata.items()
        mine = [one for one in self._all if asked.graph_id in {None, one["graph_id"]}]
        return [one for one in mine if part in one["name"] and wanted <= one["metadata"].items()]

    def get(self, asked: str) -> Assistant:
        """Return an assistant by its id or the name of its graph; refuse what is neither."""
        for one in self._all:
            if asked in {one["assistant_id"], one["graph_id"]}:
                return one
        if len(asked) == len(str(_NAMESPACE)) and asked.count("-") == str(_NAMESPACE).count("-"):
            not_found("Thread or assistant")
        names = ", ".join(one["graph_id"] for one in self._all)
        raise RefusedRequestError(422, _INVALID.format(asked[:100], names))
