"""The graphs as Runnables: steps of chains, and parts of graphs with a state of their own."""

import operator
from operator import itemgetter
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from crag.graph import build_crag, build_rag
from crag.langchain import CorrectiveRetriever
from crag.parts import Evaluator
from crag.settings import Settings
from crag.testing import FakeEvaluator, FakeRetriever

QUESTION = "Who wrote the first program?"


class Own(TypedDict, total=False):
    """The state of somebody's graph, with a reducer of its own."""

    topic: str
    report: str
    sources: list[str]
    log: Annotated[list[str], operator.add]


async def use(runnable: Any, given: Any) -> Any:
    """Return what both ways to call it give."""
    result = runnable.invoke(given)
    assert await runnable.ainvoke(given) == result
    return result


@pytest.mark.parametrize("build", [build_crag, build_rag])
async def test_a_graph_is_a_step_of_a_chain(make_parts: Any, build: Any) -> None:
    chain = {"question": RunnablePassthrough()} | build(make_parts(0.9)) | itemgetter("answer")
    assert await use(chain, QUESTION) == "Ada Lovelace did [1]."


async def test_bound_settings_hold_for_every_run(make_parts: Any) -> None:
    graph = build_crag(make_parts(0.9)).bind(context=Settings(upper=0.95))
    chain = {"question": RunnablePassthrough()} | graph | itemgetter("action")
    assert await use(chain, QUESTION) == "ambiguous"


async def test_a_graph_with_another_state_maps_it(make_parts: Any) -> None:
    inner = build_crag(make_parts(0.9))

    def mapped(found: Any) -> Own:
        sources = [cited["source"]["url"] for cited in found["citations"]]
        return Own(report=found["answer"], sources=sources, log=["researched"])

    def research(state: Own) -> Own:
        return mapped(inner.invoke({"question": state["topic"]}, context=Settings(k=1)))

    graph = StateGraph(Own)
    graph.add_node("research", research)
    graph.add_edge(START, "research")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for runs in (1, 2):
        state = await compiled.ainvoke({"topic": QUESTION}, config)
        assert state["report"] == "Ada Lovelace did [1]."
        assert state["sources"] == ["ada.md"]
        assert state["log"] == ["researched"] * runs


def test_a_retriever_is_reconfigured_for_one_run(documents: Any) -> None:
    judge: Evaluator = FakeEvaluator(0.9)
    retriever = CorrectiveRetriever(
        retriever=FakeRetriever(documents=documents), evaluator=judge
    ).configurable_fields(settings=ConfigurableField(id="settings"))
    assert len(retriever.invoke(QUESTION)) == 2
    chosen = retriever.with_config(configurable={"settings": Settings(strips_kept=1)})
    assert len(chosen.invoke(QUESTION)) == 1
