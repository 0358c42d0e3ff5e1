"""The reflection subgraph, used in Self-RAG, Self-CRAG and graphs of your own."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.answering.outcome import AnswerUpdate
from crag.graph.routes import FORMS, by_form, by_search
from crag.nodes.finish_reflection import finish_reflection
from crag.nodes.reflect import reflect
from crag.parts import Attributor, Prefix, Quoter, ReflectionBackend
from crag.reflection.beam import beam_round
from crag.reflection.driver import Algorithm, Driver
from crag.reflection.graded_loop import graded_loop
from crag.reflection.retrieval_decision import first_choice
from crag.reflection.short_form import short_form
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import Action, Choice, Reflection, State, merge_reflection


class Algorithms(NamedTuple):
    """What decides and answers, by the names of the nodes: ours, or another program's."""

    decide: Callable[[Prefix, Driver], Choice] = first_choice
    short_form: Algorithm = short_form
    beam_step: Algorithm = beam_round
    """One round; it is repeated until the record has no `beam`."""
    graded_loop: Algorithm = graded_loop


OURS = Algorithms()


class ReflectInput(TypedDict, total=False):
    """The input of reflection, which decides itself whether to use passages."""

    question: str
    asked: str
    reflection: Annotated[Reflection | None, merge_reflection]
    """Its `passages`, and its `choices` if the graph around has decided whether to use them."""
    action: Action | None


class ReflectOutput(AnswerUpdate):
    """The output of reflection."""

    reflection: Reflection | None


def build_reflect(
    backend: ReflectionBackend,
    retriever: BaseRetriever | None = None,
    attributor: Attributor | None = None,
    *,
    quoter: Quoter | None = None,
    algorithms: Algorithms = OURS,
) -> CompiledStateGraph[State, Settings, ReflectInput, ReflectOutput]:
    """Compile the algorithms (short form, long form, the poster's rule) → finish_reflection.

    The input is `question` and ``reflection={"passages": […]}``;
    `crag.correction.provenance.offered_document` turns a Document into a passage. The `retriever`
    is used for dynamic retrieval, a search for each segment of the long form; the `attributor`
    judges the sentences of the answer, and the `quoter` answers in the place of a model whose text
    no passage supports. `max_depth` bounds the cycle of `beam_step`.
    """
    graph = StateGraph(
        State,
        context_schema=Settings,
        input_schema=ReflectInput,
        output_schema=ReflectOutput,
    )
    for name in FORMS.values():
        algorithm = getattr(algorithms, name)
        graph.add_node(name, as_node(reflect, algorithm, backend, retriever, name=name))
    graph.add_node("finish_reflection", as_node(finish_reflection, attributor, quoter))

    graph.add_conditional_edges(START, by_form, [*FORMS.values(), "finish_reflection"])
    graph.add_edge("short_form", "finish_reflection")
    graph.add_conditional_edges("beam_step", by_search)
    graph.add_edge("graded_loop", "finish_reflection")
    graph.add_edge("finish_reflection", END)
    return graph.compile(name="reflect")
