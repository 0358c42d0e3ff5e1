"""`crag.open`: ask documents from a Python program."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StreamMode

from crag.errors import CragError, QuestionError, SettingsError
from crag.events import Event
from crag.factory.parts import choose_parts
from crag.graph_registry import graph_named
from crag.parts import Parts
from crag.runtime.environment import Environment
from crag.settings import Settings
from crag.state import Action, Citation, Outcome, Strip, Usage
from crag.text.thoughts import AnswerStream

Graph = CompiledStateGraph[Any, Any, Any, Any]
Question = str | Sequence[AnyMessage]
"""A question, or the messages of a chat, the last of which asks."""
Chosen = Settings | Mapping[str, object] | None
_MODES: list[StreamMode] = ["values", "messages"]
_Replies = defaultdict[str | None, AnswerStream]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer with everything that it rests on; as text it is the answer alone."""

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
    state: Mapping[str, Any]
    """The whole state of the run."""

    def __str__(self) -> str:
        """Return the answer."""
        return self.answer


class Token(NamedTuple):
    """A piece of the answer as the model writes it."""

    text: str
    reply: str | None
    """The id of the model's reply: when another begins, the one before it was no answer."""


class OpenDocuments:
    """Documents that can be asked; `crag.open` returns them.

    A question is text, or the messages of a chat, the last of which asks. `settings` change those
    of the documents for this question. What fails outside of the program, such as a model or a
    search, is an event of the answer and raises nothing.

    Raises:
        QuestionError: the question is empty or too long.
        SettingsError: a setting is unknown or out of range.
    """

    def __init__(self, graph: Graph, settings: Chosen = None) -> None:
        self.graph = graph
        """The compiled graph, for drawing, or as a part of another one."""
        self.settings = Settings.model_validate(settings or {})
        """The settings of every question that names none of its own."""

    def ask(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Answer:
        """Answer a question."""
        return _answer(self.graph.invoke(**self._asked(question, settings, config)))

    async def aask(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Answer:
        """Do as `ask` without blocking the event loop."""
        return _answer(await self.graph.ainvoke(**self._asked(question, settings, config)))

    def stream(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> Iterator[Token | Answer]:
        """Yield each piece that the model writes, and at last the answer.

        Citations are checked at the end, so the text of the answer may differ from the pieces.
        """
        state, replies, asked = {}, _Replies(AnswerStream), self._asked(question, settings, config)
        stream: Any = self.graph.stream(**asked, stream_mode=_MODES)
        for mode, chunk in stream:
            if mode == "messages":
                yield from _written(replies, *chunk)
            else:
                state = chunk
        yield _answer(state)

    async def astream(
        self, question: Question, *, settings: Chosen = None, config: RunnableConfig | None = None
    ) -> AsyncIterator[Token | Answer]:
        """Do as `stream` without blocking the event loop."""
        state, replies, asked = {}, _Replies(AnswerStream), self._asked(question, settings, config)
        stream: Any = self.graph.astream(**asked, stream_mode=_MODES)
        async for mode, chunk in stream:
            if mode == "messages":
                for token in _written(replies, *chunk):
                    yield token
            else:
                state = chunk
        yield _answer(state)

    def _asked(
        self, question: Question, settings: Chosen, config: RunnableConfig | None
    ) -> dict[str, Any]:
        changed = Settings.model_validate(settings or {})
        given = [one.model_dump(exclude_unset=True) for one in (self.settings, changed)]
        chosen = Settings.model_validate({**given[0], **given[1]})
        if chosen.confirm_web:
            allowed = "nobody can be asked here: build the graph with a checkpointer, and resume it"
            raise SettingsError("confirm_web", True, allowed)  # noqa: FBT003 - the value of the field
        if not isinstance(question, str | list | tuple):
            kind = type(question).__name__
            raise QuestionError(f"question must be text or a list of messages, not {kind}")
        asked = {"question": question} if isinstance(question, str) else {"messages": [*question]}
        return {"input": asked, "config": config, "context": chosen}


def open_documents(
    location: str | Path | None = None,
    *,
    retriever: BaseRetriever | None = None,
    parts: Parts | None = None,
    method: str = "crag",
    settings: Chosen = None,
) -> OpenDocuments:
    """Open an index, a retriever, or parts of your own, to ask it; `crag.open` is this function.

    `location` is a folder or an address that `crag index` wrote to (default: `CRAG_INDEX`, else
    .crag/index). `retriever` is any of LangChain's. Model, evaluator and web search are then those
    of the environment and crag.toml. `method` is one of the graphs that `crag ask --method` offers.

    Raises:
        CragError: there is no index, several of the three are given, or a part cannot be used.
        SettingsError: a setting or the method is unknown, or a value is out of range.
    """
    entry = graph_named(method)
    if not isinstance(location, str | Path | None):
        kind = type(location).__name__
        raise CragError(f"the place of an index is a text or a path, not {kind}: name retriever=…")
    if sum(one is not None for one in (location, retriever, parts)) > 1:
        raise CragError("give the place of an index, a retriever, or parts: only one of them")
    if parts is None:
        place = Environment()
        if location is not None:
            place = place.model_copy(update={"index": str(location)})
        parts = choose_parts(place, index_must_exist=retriever is None)
        parts = parts if retriever is None else replace(parts, retriever=retriever)
    return OpenDocuments(entry.build(parts), settings)


def _written(
    replies: _Replies, message: AnyMessage, metadata: Mapping[str, Any]
) -> Iterator[Token]:
    is_answer = metadata.get("langgraph_node") == "generate"  # Not a query or a score.
    if is_answer and (text := replies[message.id].add(message.text)):
        yield Token(text, message.id)


def _answer(state: Mapping[str, Any]) -> Answer:
    names = (one.name for one in fields(Answer) if one.name != "state")
    return Answer(**{name: state[name] for name in names}, state=state)
