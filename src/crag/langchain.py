"""Corrective RAG in LangChain programs: a corrective retriever, and tools for agents.

The graphs themselves are LangChain Runnables and need no adapter.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict, Field

from crag.correction.provenance import source_of
from crag.correction.strips import score_of
from crag.errors import CragError
from crag.evaluators import load_evaluator
from crag.events import Event, describe
from crag.graph.corrective import build_knowledge
from crag.graph.opening import Graph
from crag.parts import ChatModel, Evaluator, PageReader, Parts, WebSearcher
from crag.prompts import PACKAGED, Prompts
from crag.runtime.calls import Attempt, options_of
from crag.settings import Settings
from crag.state import Citation, State, Strip
from crag.text.marks import as_mark
from crag.text.untrusted import neutral

logger = logging.getLogger(__name__)

_DESCRIPTION = (
    "Answer a question from the documents, with numbered sources; say so if there is no answer."
)


Asked = Annotated[str, "One complete question that can be understood on its own."]


class CorrectiveRetriever(BaseRetriever):
    """Correct the results of another retriever: grade, refine, and search the web if needed.

    It returns the kept strips as documents (see `documents_of`). If nothing passes, it returns an
    empty list and logs the reason. What fails is an event, as in the graphs. Unless `settings` set
    `k`, a wrapped vector store retriever is called with its own `search_kwargs["k"]`; the same goes
    for the other settings that an `IndexRetriever` takes.

    Raises:
        SettingsError: a setting is unknown or out of range.
        QuestionError: the question is empty or too long.
    """

    retriever: BaseRetriever
    """The retriever to correct."""
    evaluator: Evaluator = Field(default_factory=load_evaluator)
    """Scores documents and strips; by default the packaged one, whose weights load on first use."""
    model: ChatModel | None = None
    """Rewrites the question for the web search; without it the question's keywords are the
    query."""
    prompts: Prompts = PACKAGED
    """What the model is asked with."""
    searcher: WebSearcher | None = None
    """Searches the web; without it nothing leaves the machine."""
    reader: PageReader | None = None
    """Reads the pages that a search found; without it their snippets are used."""
    settings: Settings = Settings()
    """Settings of each run; a mapping is validated."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True, use_attribute_docstrings=True, extra="forbid"
    )

    @property
    def graph(self) -> Graph:
        """A compiled graph, for drawing, streaming, or use within another graph."""
        names = ("retriever", "evaluator", "model", "prompts", "searcher", "reader")
        return build_knowledge(Parts(**{name: getattr(self, name) for name in names}))

    def correct(self, question: str, config: RunnableConfig | None = None) -> State:
        """Return the whole state of a run: scores, action, strips kept and dropped, events."""
        graph: Any = self.graph
        return _logged(graph.invoke({"question": question}, config, context=self._chosen()))

    async def acorrect(self, question: str, config: RunnableConfig | None = None) -> State:
        """Do the same without blocking the event loop."""
        graph: Any = self.graph
        return _logged(await graph.ainvoke({"question": question}, config, context=self._chosen()))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return documents_of(self.correct(query, {"callbacks": run_manager.get_child()}))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return documents_of(await self.acorrect(query, {"callbacks": run_manager.get_child()}))

    def _chosen(self) -> Settings:
        """Return the settings, with those of the wrapped retriever in the place of defaults."""
        own: dict[str, Any] = getattr(self.retriever, "search_kwargs", {})
        taken = options_of(self.retriever, self.settings).keys() - self.settings.model_fields_set
        return self.settings.model_copy(update={name: own[name] for name in taken & own.keys()})


def _logged(state: State) -> State:
    if not any(strip["kept"] for strip in state["strips"]):
        reasons = "; ".join(f"{event['kind']}: {event['detail']}" for event in state["events"])
        logger.warning("no knowledge passes after the action %s; %s", state["action"], reasons)
    return state


def documents_of(state: State) -> list[Document]:
    """Return the kept strips of a run as documents, the best first, without irrelevant ones.

    Irrelevant is what scores below the lower threshold. The metadata have `score` (None if not
    scored; such come last), `action`, `thresholds`, `kind` (``document`` or ``web``) and the
    source's `title`, `url`, `position` and `id`; a strip of a document also keeps the other
    metadata of that. States returned by a server are accepted too.
    """
    limits = state.get("thresholds")
    lower = limits["lower"] if limits else float("-inf")
    whole = [Document.model_validate(given) for given in state.get("documents", [])]
    kept = [
        one for one in state["strips"]
        if one["kept"] and (one["score"] is None or one["score"] >= lower)
    ]  # fmt: skip
    found = []
    for strip in sorted(kept, key=score_of, reverse=True):
        own = {**strip["source"], "kind": strip["kind"], "score": strip["score"]}
        own |= {"action": state.get("action"), "thresholds": limits}
        metadata = {"source": own["url"], **_original(strip, whole), **own}
        found.append(Document(strip["text"], metadata=metadata))
    return found


def _original(strip: Strip, documents: Sequence[Document]) -> Mapping[str, Any]:
    """Return the metadata of the document that a strip was cut from; of a page there is none.

    Pages of one book may share their names: of several documents the one with the text is meant.
    """
    for place, document in enumerate(documents):
        is_named = source_of(document, place)["id"] == strip["source"]["id"]
        if is_named and strip["text"] in document.page_content:
            return {name: one for name, one in document.metadata.items() if name != "reading"}
    return {}


def as_tool(
    graph: Runnable[Any, Any],
    *,
    name: str | None = None,
    description: str = _DESCRIPTION,
    settings: Settings | Mapping[str, object] | None = None,
) -> BaseTool:
    """Turn a graph that answers, ours or a `RemoteGraph` of one, into a tool for agents.

    The tool's content is the answer with its numbered sources and the events of the run; its
    artifact is the whole state. `name` defaults to ``ask_`` and the graph's name. A call that fails
    (an empty question, a server that is down) returns a tool error.

    Raises:
        SettingsError: a setting is unknown or out of range.
    """
    name = name or f"ask_{graph.get_name()}"
    options: dict[str, Any] = {}
    if settings is not None:
        chosen = Settings.model_validate(settings)
        options["context"] = chosen.model_dump(mode="json", exclude_unset=True)

    def ask(question: Asked, config: RunnableConfig) -> tuple[str, State]:
        with Attempt(name) as attempt:
            return _written(graph.invoke({"question": question}, config, **options))
        raise ToolException(f"No answer: {neutral(describe(attempt.error))}")

    async def aask(question: Asked, config: RunnableConfig) -> tuple[str, State]:
        with Attempt(name) as attempt:
            return _written(await graph.ainvoke({"question": question}, config, **options))
        raise ToolException(f"No answer: {neutral(describe(attempt.error))}")

    return StructuredTool.from_function(
        ask, aask, name=name, description=description, response_format="content_and_artifact",
        handle_tool_error=True,
    )  # fmt: skip


def _written(state: Any) -> tuple[str, Any]:
    """Return the answer, its sources and the events as text for an agent, and the state.

    Raises:
        CragError: the graph writes no answer, such as that of a retriever.
    """
    if "__interrupt__" in state:
        return "No answer yet: the run waits for a decision about the web search.", state
    if not isinstance(state, Mapping) or not state.get("outcome"):
        raise CragError("the graph writes no answer: give as_tool one that does, as build_crag")
    pieces = [state["answer"]]
    if state["citations"]:
        pieces.append("\n".join(["Sources:", *map(_source, state["citations"])]))
    if state["events"]:
        pieces.append("\n".join(["Notes:", *map(_note, state["events"])]))
    return "\n\n".join(pieces), state


def _source(citation: Citation) -> str:
    source = citation["source"]
    where = (source["title"], source["position"], source["url"])
    parts = (" ".join(neutral(part).split()) for part in where if part)
    return f"{as_mark(citation['number'])} {', '.join(parts) or source['id']}"


def _note(entry: Event) -> str:
    fallback = f" → {entry['fallback']}" if entry["fallback"] else ""
    return f"- {entry['kind']}: {neutral(entry['detail'])}{fallback}"
