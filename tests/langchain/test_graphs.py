"""The graphs as Runnables: steps of chains, and parts of graphs with a state of their own."""

from operator import itemgetter
from typing import Any

import pytest
from langchain_core.runnables import ConfigurableField, RunnablePassthrough

from crag.graph import build_crag, build_rag
from crag.langchain import CorrectiveRetriever
from crag.parts import Evaluator
from crag.settings import Settings
from crag.testing import FakeEvaluator, FakeRetriever

QUESTION = "Who wrote the first program?"


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


def test_a_retriever_is_reconfigured_for_one_run(documents: Any) -> None:
    judge: Evaluator = FakeEvaluator(0.9)
    retriever = CorrectiveRetriever(
        retriever=FakeRetriever(documents=documents), evaluator=judge
    ).configurable_fields(settings=ConfigurableField(id="settings"))
    assert len(retriever.invoke(QUESTION)) == 2
    chosen = retriever.with_config(configurable={"settings": Settings(strips_kept=1)})
    assert len(chosen.invoke(QUESTION)) == 1
