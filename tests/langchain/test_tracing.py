"""What a tracing back end is told: it receives the same runs as the collector here."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_core.tracers.schemas import Run

from crag.langchain import CorrectiveRetriever
from crag.parts import Hit
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever

QUESTION = "Who wrote the first program?"


@tool
def archive(query: str) -> str:
    """Search the archive."""
    return f"Ada Lovelace is in the archive under {query}."


class ToolSearcher:
    """A searcher that asks a LangChain tool, as programs have them already."""

    def search(self, query: str, limit: int) -> list[Hit]:
        return [Hit("Archive", "https://example.org/a", archive.invoke(query))][:limit]

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        return [Hit("Archive", "https://example.org/a", await archive.ainvoke(query))][:limit]


@pytest.fixture
def retriever(documents: list[Document]) -> CorrectiveRetriever:
    """Judge every text Ambiguous, so that all nodes run."""
    return CorrectiveRetriever(
        retriever=FakeRetriever(documents=documents, name="shelf"),
        evaluator=FakeEvaluator(0.0),
        model=FakeChatModel(replies=["first program"], name="writer"),
        searcher=ToolSearcher(),
        settings=Settings(strips_kept=3),
    )


def nested(run: Run, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Run]]:
    here = (*path, run.name)
    yield here, run
    for child in run.child_runs:
        yield from nested(child, here)


async def traced(runnable: Any, given: Any, **config: Any) -> dict[tuple[str, ...], Run]:
    """Return the runs of a call that is awaited; one that blocks shows the same nodes."""
    collector = RunCollectorCallbackHandler()
    wanted = RunnableConfig(callbacks=[collector], **config)
    await runnable.ainvoke(given, wanted)
    runnable.invoke(given, wanted)
    assert len(collector.traced_runs) == 2, "everything belongs to one trace"
    awaited, called = (dict(nested(run)) for run in collector.traced_runs)
    assert nodes_of(awaited) == nodes_of(called)
    return awaited


def nodes_of(runs: dict[tuple[str, ...], Run]) -> set[tuple[str, ...]]:
    return {path for path, run in runs.items() if run.metadata.get("langgraph_node") == run.name}


async def test_every_node_is_shown_by_its_name(retriever: CorrectiveRetriever) -> None:
    runs = await traced(retriever, QUESTION)
    graph = ("CorrectiveRetriever", "knowledge")
    branch = (*graph, "web", "web")  # The node, and the graph that it is.
    assert nodes_of(runs) == {
        *((*graph, name) for name in ("open_run", "retrieve", "grade", "refine", "web")),
        *((*branch, name) for name in ("rewrite", "search", "read_pages", "select")),
        branch,
    }


async def test_tags_and_settings_are_shown_with_those_of_the_caller(
    retriever: CorrectiveRetriever,
) -> None:
    runs = await traced(
        retriever, QUESTION, run_name="correct", tags=["mine"], metadata={"user": "7"}
    )
    assert {"crag", "mine"} <= set(runs[("correct",)].tags or [])
    graph = runs["correct", "knowledge"]
    assert {"crag", "mine"} <= set(graph.tags or [])
    assert graph.metadata["crag_settings"] == {"strips_kept": 3}
    assert graph.metadata["user"] == "7"
    assert runs["correct", "knowledge", "grade"].metadata["user"] == "7"


async def test_callbacks_reach_retriever_model_and_searcher(retriever: CorrectiveRetriever) -> None:
    runs = await traced(retriever, QUESTION)
    found = {run.name: (path[-2:-1], run.run_type) for path, run in runs.items()}
    assert found["shelf"] == (("retrieve",), "retriever")
    assert found["writer"] == (("rewrite",), "llm")
    assert found["archive"] == (("search",), "tool")
