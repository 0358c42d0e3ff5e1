"""The front door for Python programs: `crag.open` an index, and ask it.

It builds the parts that `crag ask` builds from the environment and crag.toml, or takes your own,
and returns what users of an answer need under names that a type checker knows.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from crag.asking.running import Graph
from crag.asking.streaming import MODES, Step, StreamedRun, Token
from crag.errors import CragError, QuestionError, SettingsError
from crag.events import Event
from crag.factory.parts import choose_parts
from crag.graph_registry import OFFERED, graph_named
from crag.parts import Parts
from crag.runtime.environment import Environment
from crag.runtime.waiting import blocking, call
from crag.settings import Settings, settings_from
from crag.settings_dict import SettingsDict
from crag.state import Action, Citation, Outcome, State, Strip, Usage

__all__ = ["Answer", "OpenDocuments", "Step", "Token", "open_documents"]

Question = str | Sequence[AnyMessage]
"""A question, or the messages of a chat, the last of which asks."""
Chosen = Settings | SettingsDict | None
"""Settings; of a mapping, those that it names."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer with all that it rests on; as text it is the answer alone."""

    question: str
    """The question that was answered: a follow-up as it was made self-contained."""
    answer: str
    """The answer with its citations, as ``[1]``; where there is none, a sentence that says so."""
    outcome: Outcome
    """``answered``, ``likely`` (probably an answer), ``not_found`` or ``nothing_asked``."""
    citations: list[Citation]
    """The strips that the answer cites, with their sources."""
    action: Action | None
    """Correct, Incorrect or Ambiguous; None if the graph grades nothing."""
    strips: list[Strip]
    """All strips with their scores, kept or not: those of the documents, then those of the web."""
    events: list[Event]
    """What went wrong on the way, and what was done instead."""
    usage: Usage
    state: State
    """The whole state of the run."""

    def __str__(self) -> str:
        """Return the answer."""
        return self.answer


class OpenDocuments:
    """Documents that can be asked; see `open_documents`."""

    def __init__(self, graph: Graph, settings: Chosen) -> None:
        self.graph = graph
        """The compiled graph, for drawing, or as a part of another one."""
        self._given = _given(settings)
        self.settings = settings_from(self._given)
        """The settings of every question that names none of its own."""

    def ask(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Answer:
        """Answer a question, or the last message of a chat.

        `settings` change those of the documents for this question. What fails outside of the
        program, such as a model or a search, is an event of the answer, and raises nothing.

        Raises:
            QuestionError: the question is empty or too long.
            SettingsError: a setting is unknown or out of range.
        """
        return blocking(self.aask(question, settings=settings, config=config))

    async def aask(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Answer:
        """Do as `ask` without blocking the event loop."""
        chosen = self._chosen(settings)
        graph: Any = self.graph  # Its overloads say more than is asked here.
        state = await call(graph.invoke, graph.ainvoke, _input(question), config, context=chosen)
        return _answer(cast("State", state))

    def stream(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Iterator[Token | Step | Answer]:
        """Yield each piece that the model writes and each step, and at last the answer.

        Citations are checked at the end, so the text of the answer may differ from the pieces.

        Raises:
            QuestionError: the question is empty or too long.
            SettingsError: a setting is unknown or out of range.
        """
        run, chosen = StreamedRun(), self._chosen(settings)
        for path, mode, chunk in self.graph.stream(
            _input(question), config, context=chosen, stream_mode=MODES, subgraphs=True
        ):
            yield from run.read(path, mode, chunk)
        yield _answer(cast("State", run.state))

    async def astream(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> AsyncIterator[Token | Step | Answer]:
        """Do as `stream` without blocking the event loop."""
        run, chosen = StreamedRun(), self._chosen(settings)
        async for path, mode, chunk in self.graph.astream(
            _input(question), config, context=chosen, stream_mode=MODES, subgraphs=True
        ):
            for piece in run.read(path, mode, chunk):
                yield piece
        yield _answer(cast("State", run.state))

    def _chosen(self, settings: Chosen) -> Settings:
        changes = _given(settings)
        # Not those of `self.settings`, which hold what its task brought along.
        chosen = settings_from(self._given | changes) if changes else self.settings
        if chosen.confirm_web:
            allowed = "nobody can be asked here: build the graph with a checkpointer, and resume it"
            raise SettingsError("confirm_web", True, allowed)  # noqa: FBT003 - the value of the field
        return chosen


def open_documents(
    location: str | Path | None = None,
    *,
    method: str = "crag",
    settings: Chosen = None,
    parts: Parts | None = None,
) -> OpenDocuments:
    """Open an index, or `parts` of your own, to ask it; `crag.open` is this function.

    `location` is a folder or an address that `crag index` wrote to (default: `CRAG_INDEX`, else
    .crag/index); model, evaluator and web search are those of the environment and crag.toml.
    `method` is one of the graphs that `crag ask --method` offers.

    Raises:
        CragError: there is no index, both an index and parts are given, or a part cannot be used.
        SettingsError: a setting or the method is unknown, or a value is out of range.
    """
    entry = graph_named(method)
    if entry.kind == "unanswered":
        allowed = f"it writes no answer: choose one of {', '.join(OFFERED)}"
        raise SettingsError("method", method, allowed)
    if parts is None:
        place = Environment()
        if location is not None:
            place = place.model_copy(update={"index": str(location)})
        parts = choose_parts(place, index_must_exist=True)
    elif location is not None:
        message = "parts have a retriever of their own: give either them or the place of an index"
        raise CragError(message)
    return OpenDocuments(entry.build(parts), settings)


def _given(settings: Chosen) -> dict[str, object]:
    if settings is None or isinstance(settings, Mapping):
        return {**(settings or {})}
    return Settings.model_validate(settings).model_dump(exclude_unset=True)


def _input(question: Question) -> dict[str, Any]:
    if isinstance(question, Mapping | BaseMessage | bytes) or not isinstance(question, Iterable):
        message = f"question must be text or a list of messages, not {type(question).__name__}"
        raise QuestionError(message)
    return {"question": question} if isinstance(question, str) else {"messages": [*question]}


def _answer(state: State) -> Answer:
    return Answer(
        question=state["question"],
        answer=state["answer"] or "",
        outcome=state["outcome"] or "not_found",
        citations=state["citations"],
        action=state.get("action"),
        strips=[*state.get("internal", []), *state.get("external", [])],
        events=state.get("events", []),
        usage=state.get("usage", {}),
        state=state,
    )
