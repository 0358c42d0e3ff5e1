"""Baselines for CRAG: always search the web, and a yes or no for each document.

`binary_llm` is what tutorials call corrective RAG: a chat model says yes or no to each document in
turn, any "no" adds a web search for the rewritten question, and the search results are added to the
documents that passed. There is no Ambiguous, no refinement, and no page is read.
"""

from collections.abc import Hashable, Iterator
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langgraph.graph import END

from crag.answering.model_calls import Reply, aask, ask
from crag.correction.provenance import kept_whole, strips_of_snippet, title_of
from crag.correction.queries import longest_query
from crag.correction.scoring import with_title
from crag.errors import CragError, EvaluatorError
from crag.events import Event, event
from crag.graph.opening import Graph, opened_graph
from crag.graph.web import build_web
from crag.nodes.generate import Generate
from crag.nodes.grade import graded
from crag.nodes.pass_through import PassThrough
from crag.nodes.retrieve import Retrieve
from crag.nodes.rewrite import Rewrite
from crag.nodes.search import Search
from crag.papers.bench.verdicts import verdict
from crag.parts import ChatModel, Parts
from crag.prompts import PACKAGED, Prompts
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import State, Strip, Usage, add_usage
from crag.text.untrusted import neutral

Update = dict[str, Any]
_AFTER_GRADES: dict[Hashable, str] = {"rewrite": "rewrite", "generate": "generate"}
YES, NO = 1.0, -1.0


def build_rag_web(parts: Parts) -> Graph:
    """Compile open_run → retrieve → pass_through and web → generate (CRAG v3, Tab. 5).

    Web knowledge is always added. The paper adds it without an evaluator: set `select` to false.
    """
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("pass_through", as_node(PassThrough()))
    graph.add_node("web", build_web(parts))
    graph.add_node(
        "generate",
        as_node(Generate(parts.model, parts.quoter, parts.prompts, attributor=parts.attributor)),
        defer=True,
    )
    graph.add_edge("retrieve", "pass_through")
    graph.add_edge("retrieve", "web")
    graph.add_edge("pass_through", "generate")
    graph.add_edge("web", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="rag_web")


def build_binary_llm(parts: Parts) -> Graph:
    """Compile open_run → retrieve → grade → (rewrite → search → snippets →) generate.

    Tutorials do so.

    Raises:
        CragError: the parts hold no chat model.
    """
    if parts.model is None:
        raise CragError("binary_llm asks a chat model about each document: give Parts(model=…)")
    longest = longest_query(parts.searcher)
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("grade", as_node(GradeOneByOne(parts.model, parts.prompts)))
    graph.add_node("rewrite", as_node(Rewrite(parts.model, parts.prompts, longest=longest)))
    graph.add_node("search", as_node(Search(parts.searcher, parts.searcher_hint)))
    graph.add_node("snippets", as_node(Snippets()))
    graph.add_node(
        "generate",
        as_node(Generate(parts.model, parts.quoter, parts.prompts, attributor=parts.attributor)),
    )
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", by_any_no, _AFTER_GRADES)
    graph.add_edge("rewrite", "search")
    graph.add_edge("search", "snippets")
    graph.add_edge("snippets", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="binary_llm")


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
        return _graded(state, [ask(self._model, prompt) for prompt in self._asked(state)])

    async def arun(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Do the same, awaiting the model."""
        return _graded(state, [await aask(self._model, prompt) for prompt in self._asked(state)])

    def _asked(self, state: State) -> Iterator[list[AnyMessage]]:
        question = neutral(state["question"])
        for document in state["documents"]:
            knowledge = neutral(_shown(document))
            yield self._prompts.render("grade_direct", question=question, knowledge=knowledge)


class Snippets:
    """Use the search results as they are."""

    def run(self, state: State, settings: Settings) -> Update:  # noqa: ARG002 - a node's form
        """Write one kept strip for each hit."""
        strips = [
            strip
            for place, hit in enumerate(state["pages"])
            for strip in strips_of_snippet(hit, place)
        ]
        return {"strips": [Strip({**s, "kept": True, "reason": "searched"}) for s in strips]}


def _shown(document: Document) -> str:
    return with_title(title_of(document), document.page_content)


def _graded(state: State, replies: list[Reply]) -> Update:
    scores, events, usage = [], [], Usage()
    for reply in replies:
        said, problem = _verdict(reply)
        scores.append(YES if said else NO)
        events += problem
        usage = add_usage(usage, reply.usage)
    passed = [document for document, score in zip(state["documents"], scores, strict=True)
              if score == YES]  # fmt: skip
    strips = kept_whole(passed, "the model said yes")
    documents = graded(state["documents"], scores)
    return {"documents": documents, "strips": strips, "events": events, "usage": usage}


def _verdict(reply: Reply) -> tuple[bool, list[Event]]:
    if reply.problem is not None:
        return False, [event("model_failed", "grade", reply.detail, "counted as no")]
    try:
        return verdict(reply.text), []
    except EvaluatorError as error:
        return False, [event("model_empty", "grade", error, "counted as no")]
