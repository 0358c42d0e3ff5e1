"""What a run tells while it goes on: the words of the model, and what each node writes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from langgraph.types import StreamMode

INTERRUPT: Final = "__interrupt__"
MODES: Final[list[StreamMode]] = ["values", "updates", "messages"]
"""What a graph must stream, with its subgraphs, to be read by `StreamedRun`."""
_WRITER = "generate"
"""The node whose model writes the answer; others ask it for a query or a score."""


class Token(NamedTuple):
    """A piece of the answer as the model writes it."""

    text: str
    reply: str | None
    """The id of the model's reply: where another begins, the one before it was no answer."""


class Step(NamedTuple):
    """A node that has ended, at any depth of the graph."""

    node: str
    update: Mapping[str, Any]
    """What it wrote into the state: keys of `crag.state.State`."""


class StreamedRun:
    """The state of a run, gathered from what its graph streams."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        """The state so far; with `INTERRUPT`, if the run waits for a human."""
        self._path: Any = None
        """Of the run itself: not empty where it goes on within a node of another graph."""

    def read(self, path: Any, mode: str, chunk: Any) -> Iterator[Token | Step]:
        """Take what a graph streamed with `MODES` and its subgraphs, and yield what it tells."""
        if mode == "values":
            if self._path is None:  # A graph streams its state before those of its subgraphs.
                self._path = path
            if path == self._path:
                self.state |= chunk
        elif mode == "messages":
            message, metadata = chunk
            if metadata.get("langgraph_node") == _WRITER:
                yield Token(message.text, message.id)
        else:
            for node, update in chunk.items():
                if node == INTERRUPT:
                    self.state[INTERRUPT] = update
                else:
                    yield Step(node, update or {})
