"""Reflection, as one node of a graph: of Self-RAG, of Self-CRAG, or of a user's own."""

from typing import Annotated

from langchain_core.messages import AnyMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.events import Event
from crag.graph.routes import FORMS, ROUNDS, by_form, by_search
from crag.nodes.beam_step import BeamStep
from crag.nodes.finish_reflection import FinishReflection
from crag.nodes.graded_loop import GradedLoop
from crag.nodes.short_form import ShortForm
from crag.reflection.backend import ReflectionBackend
from crag.reflection.records import Choice, Critique
from crag.runtime.node_adapter import computing, waiting
from crag.settings import Settings
from crag.state import Action, Citation, OfferedPassage, Reflection, State, Usage
from crag.tasks import Posed


class ReflectInput(TypedDict, total=False):
    """What reflection is given; without `choices` it decides by itself whether to use passages."""

    question: str
    posed: Posed | None
    messages: Annotated[list[AnyMessage], add_messages]
    passages: list[OfferedPassage]
    choices: list[Choice]
    action: Action


class ReflectOutput(TypedDict):
    """What it writes."""

    approximation: str
    choices: list[Choice]
    passages: list[OfferedPassage]
    critiques: list[Critique]
    reflection: Reflection | None
    knowledge: str
    answer: str
    abstained: bool
    citations: list[Citation]
    messages: Annotated[list[AnyMessage], add_messages]
    events: list[Event]
    usage: Usage


def build_reflect(
    backend: ReflectionBackend, retriever: BaseRetriever | None = None
) -> CompiledStateGraph[State, Settings, ReflectInput, ReflectOutput]:
    """Compile the algorithms (short form, long form, the poster's rule) → finish_reflection.

    Give `question` and `passages`; `crag.correction.provenance.offered_document` makes one of a
    Document. The `retriever` serves dynamic retrieval, a search for each segment of the long form.
    The cycle of `beam_step` is bounded by `max_depth`.
    """
    graph = StateGraph(
        State, context_schema=Settings, input_schema=ReflectInput, output_schema=ReflectOutput
    )
    graph.add_node("short_form", waiting(ShortForm(backend, retriever)))
    graph.add_node("beam_step", waiting(BeamStep(backend, retriever)))
    graph.add_node("graded_loop", waiting(GradedLoop(backend)))
    graph.add_node("finish_reflection", computing(FinishReflection()))

    graph.add_conditional_edges(START, by_form, FORMS)
    graph.add_edge("short_form", "finish_reflection")
    graph.add_conditional_edges("beam_step", by_search, ROUNDS)
    graph.add_edge("graded_loop", "finish_reflection")
    graph.add_edge("finish_reflection", END)
    return graph.compile(name="reflect")
