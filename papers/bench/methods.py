"""The methods that are compared: the product's graphs, and those that only experiments compare.

`rag_web` always searches the web. `crag_published` takes the texts that CRAG's authors published in
the place of refinement and web, as their inference does: for each question the text refined from
the documents, the one selected from the web of 2023, and both (CRAG, Algorithm 1). `self_rag_web`
adds introductions of Wikipedia's articles, as Self-RAG's authors do for Biography and open
questions (Self-RAG, Sec. 4.2). `binary_llm` is what tutorials call corrective RAG: a chat model
says yes or no to each document in turn, any "no" adds a web search for the rewritten question, and
the results are added to the documents that passed; nothing is refined, and no page is read.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from pydantic import ConfigDict

from crag.answering.model_calls import Reply, aask, ask
from crag.correction.provenance import kept_whole, strips_of_snippet, title_of, unscored
from crag.correction.queries import cut
from crag.correction.strips import with_title
from crag.errors import CragError, EvaluatorError
from crag.events import event
from crag.graph import (
    build_crag,
    build_no_retrieval,
    build_rag,
    build_self_crag,
    build_self_rag,
)
from crag.graph.opening import opened_graph
from crag.graph.web import build_web
from crag.nodes.generate import Generate
from crag.nodes.grade import grade, graded
from crag.nodes.pass_through import pass_through
from crag.nodes.retrieve import Retrieve
from crag.nodes.rewrite import Rewrite
from crag.nodes.search import search
from crag.papers.bench.corpus import HOST
from crag.papers.bench.examples import Example
from crag.papers.bench.verdicts import verdict
from crag.papers.released.long_form import RELEASED
from crag.parts import ChatModel, Parts, WebSearcher
from crag.prompts import PACKAGED, Prompts
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import Source, State, Strip, StripKind, Usage, add_usage, known_action
from crag.text.untrusted import neutral
from crag.text.urls import is_wikipedia

Graph = CompiledStateGraph[Any, Any, Any, Any]
Update = dict[str, Any]
YES, NO = 1.0, -1.0
DOCUMENTS, INTRODUCTIONS = 5, 5
"""Passages of `self_rag_web` from the retriever, and from the web."""
_ASKED, _LONGEST = 15, 1200
_AFTER_GRADES: dict[Hashable, str] = {"rewrite": "rewrite", "generate": "generate"}

EXAMPLE: ContextVar[Example] = ContextVar("crag_bench_example")
"""The example that is being answered; it supplies documents and published knowledge."""


class ExampleRetriever(BaseRetriever):
    """Return the documents of the current example for any question."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del query, run_manager
        return list(EXAMPLE.get().documents)


def build_rag_web(parts: Parts) -> Graph:
    """Compile open_run → retrieve → pass_through and web → generate (CRAG v3, Tab. 5).

    Web knowledge is always added. The paper adds it without an evaluator: set `select` to false.
    """
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("pass_through", as_node(pass_through))
    graph.add_node("web", build_web(parts))
    graph.add_node("generate", _generate(parts), defer=True)
    graph.add_edge("retrieve", "pass_through")
    graph.add_edge("retrieve", "web")
    graph.add_edge("pass_through", "generate")
    graph.add_edge("web", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="rag_web")


def build_crag_published(parts: Parts) -> Graph:
    """Compile open_run → retrieve → grade → look up → generate, by published knowledge."""
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("grade", as_node(grade, parts.evaluator))
    graph.add_node("look_up", as_node(LookUp()))
    graph.add_node("generate", _generate(parts))
    graph.add_edge("retrieve", "grade")
    graph.add_edge("grade", "look_up")
    graph.add_edge("look_up", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="crag_published")


def build_binary_llm(parts: Parts) -> Graph:
    """Compile open_run → retrieve → grade → (rewrite → search → snippets →) generate.

    Raises:
        CragError: the parts hold no chat model.
    """
    if parts.model is None:
        raise CragError("binary_llm asks a chat model about each document: give Parts(model=…)")
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("grade", as_node(GradeOneByOne(parts.model, parts.prompts)))
    graph.add_node("rewrite", as_node(Rewrite(parts.model, parts.prompts)))
    graph.add_node("search", as_node(search, parts.searcher))
    graph.add_node("snippets", as_node(Snippets()))
    graph.add_node("generate", _generate(parts))
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", by_any_no, _AFTER_GRADES)
    graph.add_edge("rewrite", "search")
    graph.add_edge("search", "snippets")
    graph.add_edge("snippets", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="binary_llm")


def build_self_rag_web(parts: Parts) -> Graph:
    """Compile Self-RAG with five documents and five introductions; it needs `k` of 10 or more.

    Raises:
        CragError: the parts hold no searcher.
    """
    if parts.searcher is None:
        raise CragError("self_rag_web searches Wikipedia: give Parts(searcher=…)")
    both = WithIntroductions(base=parts.retriever, searcher=parts.searcher)
    return build_self_rag(replace(parts, retriever=both), algorithms=RELEASED)


def _generate(parts: Parts) -> as_node:
    return as_node(Generate(parts))


class LookUp:
    """Use the published text of the chosen action."""

    def run(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Write one kept strip per text; Ambiguous uses the combined text, or the other two.

        A text that the official program reads as empty is an empty strip; one that is not there is
        none.
        """
        known = EXAMPLE.get().knowledge
        internal = _published(known.get("internal"), "document")
        external = _published(known.get("external"), "web")
        match known_action(state["action"]):
            case "correct":
                return {"strips": internal}
            case "incorrect":
                return {"strips": external}
            case "ambiguous":
                both = _published(known.get("combined"), "document")
                return {"strips": both or [*internal, *external]}


def _published(text: str | None, kind: StripKind) -> list[Strip]:
    source = Source(id="published", title="", url="", position="")
    if text is None:
        return []
    return [{**unscored(text, source, kind), "kept": True, "reason": "published"}]


def by_any_no(state: State) -> Literal["rewrite", "generate"]:
    """Search the web if any document was rejected, or there was none."""
    scores = [one.metadata["score"] for one in state["documents"]]
    return "generate" if scores and min(scores) == YES else "rewrite"


class GradeOneByOne:
    """Ask the model about each document, one call after the other, and keep those that pass.

    A reply that is neither yes nor no counts as no.
    """

    def __init__(self, model: ChatModel, prompts: Prompts = PACKAGED) -> None:
        self._model, self._prompts = model, prompts

    def run(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Write a score for each document, and those that pass."""
        return _judged(state, [ask(self._model, prompt) for prompt in self._asked(state)])

    async def arun(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Do the same, awaiting the model, so that many questions may wait at once."""
        return _judged(state, [await aask(self._model, prompt) for prompt in self._asked(state)])

    def _asked(self, state: State) -> Iterator[list[AnyMessage]]:
        for document in state["documents"]:
            shown = with_title(title_of(document), document.page_content)
            values = {"question": neutral(state["question"]), "knowledge": neutral(shown)}
            yield self._prompts.render("grade_direct", **values)


def _judged(state: State, replies: Sequence[Reply]) -> Update:
    scores, events, usage = list[float](), [], Usage()
    for reply in replies:
        usage = add_usage(usage, reply.usage)
        try:
            scores.append(YES if reply.problem is None and verdict(reply.text) else NO)
            if reply.problem is not None:
                events.append(event("model_failed", "grade", reply.detail, "counted as no"))
        except EvaluatorError as error:
            scores.append(NO)
            events.append(event("model_empty", "grade", error, "counted as no"))
    pairs = zip(state["documents"], scores, strict=True)
    passed = [document for document, score in pairs if score == YES]
    return {
        "documents": graded(state["documents"], scores),
        "strips": kept_whole(passed, "the model said yes"),
        "events": events,
        "usage": usage,
    }


class Snippets:
    """Use the search results as they are."""

    def run(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Write one kept strip for each hit."""
        found = [strips_of_snippet(hit, place) for place, hit in enumerate(state["pages"])]
        kept = {"kept": True, "reason": "searched"}
        return {"strips": [{**strip, **kept} for strips in found for strip in strips]}


class WithIntroductions(BaseRetriever):
    """The first documents of another retriever, then introductions that a search finds.

    A file that is searched instead of the web counts as Wikipedia.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: BaseRetriever
    searcher: WebSearcher

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = self.base.invoke(query, config={"callbacks": run_manager.get_child()})
        hits = self.searcher.search(query, _ASKED)
        articles = [hit for hit in hits if is_wikipedia(hit.url) or hit.url.startswith(HOST)]
        texts = [(hit, cut((hit.text or hit.snippet).strip(), _LONGEST)) for hit in articles]
        found = [
            Document(text, metadata={"title": hit.title, "url": hit.url})
            for hit, text in texts
            if text
        ]
        return [*documents[:DOCUMENTS], *found[:INTRODUCTIONS]]


MISSING: Mapping[str, str] = MappingProxyType({
    "model": "it needs a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL",
    "reflection": "it needs a reflection back end: set CRAG_REFLECTION",
    "searcher": "it needs a web search: set CRAG_SEARCH=wikipedia, or give --web",
})  # fmt: skip
"""What to do where a part is missing that a method needs."""


class Method(NamedTuple):
    """One way of answering."""

    build: Callable[[Parts], Graph]
    needs: tuple[str, ...] = ("retriever",)
    published: bool = False
    """Uses the knowledge of the CRAG repository's files."""
    settings: Mapping[str, object] = MappingProxyType({})
    """Settings of the method, which a variant's settings override."""

    def missing(self, parts: Parts, example: Example) -> str:
        """Return what the method needs that parts and example lack; empty if nothing."""
        for need, hint in MISSING.items():
            if need in self.needs and getattr(parts, need) is None:
                return hint
        if self.published and not example.knowledge:
            return "it needs published knowledge: give a folder of the CRAG repository"
        return ""


_REFLECTS = ("retriever", "reflection")
METHODS: Mapping[str, Method] = MappingProxyType({
    "crag": Method(build_crag),
    "self_crag": Method(partial(build_self_crag, algorithms=RELEASED), _REFLECTS),
    "self_rag": Method(partial(build_self_rag, algorithms=RELEASED), _REFLECTS),
    "rag": Method(build_rag),
    "no_retrieval": Method(build_no_retrieval, ("model",)),
    "rag_web": Method(build_rag_web, settings={"select": False}),
    "crag_published": Method(build_crag_published, published=True),
    "self_rag_web": Method(build_self_rag_web, (*_REFLECTS, "searcher")),
    "binary_llm": Method(build_binary_llm, ("retriever", "model")),
})  # fmt: skip
"""The graphs, of which those that reflect follow the settings of the papers, then what only
experiments compare. `self_crag` is assembled or routed by its settings."""
