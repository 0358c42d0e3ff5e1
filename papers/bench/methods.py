"""The methods that are compared, as graphs of the same parts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple

from langgraph.graph.state import CompiledStateGraph

from crag.evaluators.reranker import EvaluatorReranker
from crag.graph import build_rag
from crag.graph_registry import GRAPHS, GraphEntry, Need
from crag.papers.bench.baselines import build_binary_llm, build_rag_web
from crag.papers.bench.examples import Example
from crag.papers.bench.introductions import build_self_rag_web
from crag.papers.released.published import build_crag_published
from crag.papers.released.rules import ReleasedRules
from crag.parts import Parts

Graph = CompiledStateGraph[Any, Any, Any, Any]
_NOTHING: Mapping[str, object] = MappingProxyType({})
MISSING: Mapping[Need, str] = MappingProxyType(
    {
        "model": "it needs a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL",
        "reflection": "it needs a reflection back end: set CRAG_REFLECTION",
        "searcher": "it needs a web search: set CRAG_SEARCH=wikipedia, or give --web",
    }
)
"""What to do where a part is missing that a method needs."""


class Method(NamedTuple):
    """One way of answering."""

    build: Callable[[Parts], Graph]
    needs: tuple[Need, ...] = ("retriever",)
    published: bool = False
    """Uses the knowledge of the CRAG repository's files."""
    settings: Mapping[str, object] = _NOTHING
    """Settings of the method, which a variant's settings override."""

    def missing(self, parts: Parts, example: Example) -> str:
        """Return what the method needs that parts and example lack; empty if nothing."""
        for need, hint in MISSING.items():
            if need in self.needs and getattr(parts, need) is None:
                return hint
        if self.published and not example.knowledge:
            return "it needs published knowledge: give a folder of the CRAG repository"
        return ""


def _released(entry: GraphEntry) -> Callable[[Parts], Graph]:
    """Return what builds a graph; one that reflects follows the settings of the papers."""
    if "reflection" not in entry.needs:
        return entry.build
    build: Callable[[Parts], Graph] = partial(resolve_name(entry.builder), rules=ReleasedRules())
    return build


def _rag_reranked(parts: Parts) -> Graph:
    """Compile plain retrieval of the documents that the evaluator puts first."""
    return build_rag(replace(parts, reranker=EvaluatorReranker(evaluator=parts.evaluator)))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        **{
            name: Method(_released(entry), entry.needs)
            for name, entry in GRAPHS.items()
            if entry.kind != "unanswered"
        },
        "rag_reranked": Method(_rag_reranked, settings=MappingProxyType({"k": 5})),
        "rag_web": Method(build_rag_web, settings=MappingProxyType({"select": False})),
        "crag_published": Method(build_crag_published, published=True),
        "self_rag_web": Method(build_self_rag_web, ("retriever", "reflection", "searcher")),
        "binary_llm": Method(
            build_binary_llm,
            ("retriever", "model"),
            settings=MappingProxyType({"max_llm_calls": 1000}),
        ),
    }
)
"""The graphs, then what only experiments compare. `self_crag` is assembled or routed by its
settings."""
