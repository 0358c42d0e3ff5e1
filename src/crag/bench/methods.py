"""The methods that are compared, as graphs of the same parts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from langgraph.graph.state import CompiledStateGraph

from crag.bench.baselines import build_binary_llm, build_rag_web
from crag.bench.examples import Example
from crag.bench.introductions import build_self_rag_web
from crag.bench.published import build_crag_published
from crag.evaluators.reranker import EvaluatorReranker
from crag.graph import build_crag, build_no_retrieval, build_rag, build_self_crag, build_self_rag
from crag.parts import Parts

Graph = CompiledStateGraph[Any, Any, Any, Any]
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Method(NamedTuple):
    """One way of answering."""

    build: Callable[[Parts], Graph]
    retrieves: bool = True
    needs_model: bool = False
    """Needs a chat model; other methods answer with quotations without one."""
    reflects: bool = False
    searches: bool = False
    """Cannot do without a web search."""
    published: bool = False
    """Uses the knowledge of the CRAG repository's files."""
    settings: Mapping[str, object] = _NOTHING
    """Settings of the method, which a variant's settings override."""

    def missing(self, parts: Parts, example: Example) -> str:
        """Return what the method needs that parts and example lack; empty if nothing."""
        if self.needs_model and parts.model is None:
            return "it needs a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"
        if self.reflects and parts.reflection is None:
            return "it needs a reflection back end: set CRAG_REFLECTION"
        if self.searches and parts.searcher is None:
            return "it needs a web search: set CRAG_SEARCH=wikipedia, or give --web"
        if self.published and not example.knowledge:
            return "it needs published knowledge: give a folder of the CRAG repository"
        return ""


def _rag_reranked(parts: Parts) -> Graph:
    """Compile plain retrieval of the documents that the evaluator puts first."""
    return build_rag(replace(parts, reranker=EvaluatorReranker(evaluator=parts.evaluator)))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "no_retrieval": Method(build_no_retrieval, retrieves=False, needs_model=True),
        "rag": Method(build_rag),
        "rag_reranked": Method(_rag_reranked, settings=MappingProxyType({"k": 5})),
        "rag_web": Method(build_rag_web, settings=MappingProxyType({"select": False})),
        "crag": Method(build_crag),
        "crag_published": Method(build_crag_published, published=True),
        "self_rag": Method(build_self_rag, reflects=True),
        "self_rag_web": Method(build_self_rag_web, reflects=True, searches=True),
        "self_crag": Method(build_self_crag, reflects=True),
        "binary_llm": Method(
            build_binary_llm,
            needs_model=True,
            settings=MappingProxyType({"max_llm_calls": 1000}),
        ),
    }
)
"""By the name that experiments use. `self_crag` is assembled or routed by its settings."""
