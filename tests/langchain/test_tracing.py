"""What a tracing back end is told: it receives the same runs as the collector here."""

from collections.abc import Iterator

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


def nested(run: Run, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Run]]:
    here = (*path, run.name)
    yield here, run
    for child in run.child_runs:
        yield from nested(child, here)


async def test_one_trace_shows_nodes_parts_tags_and_settings(documents: list[Document]) -> None:
    """Every text is judged Ambiguous, so that all nodes run."""
    retriever = CorrectiveRetriever(
        retriever=FakeRetriever(documents=documents, name="shelf"),
        evaluator=FakeEvaluator(0.0),
        model=FakeChatModel(replies=["first program"], name="writer"),
        searcher=ToolSearcher(),
        settings=Settings(strips_kept=3),
    )
    collector = RunCollectorCallbackHandler()
    wanted = RunnableConfig(
        callbacks=[collector], run_name="correct", tags=["mine"], metadata={"user": "7"}
    )
    await retriever.ainvoke(QUESTION, wanted)
    retriever.invoke(QUESTION, wanted)
    assert len(collector.traced_runs) == 2, "everything belongs to one trace"
    graph = ("correct", "knowledge")
    branch = (*graph, "web", "web")  # The node, and the graph that it is.
    for runs in (dict(nested(run)) for run in collector.traced_runs):
        nodes = {
            path for path, run in runs.items() if run.metadata.get("langgraph_node") == run.name
        }
        assert nodes == {
            *((*graph, name) for name in ("open_run", "retrieve", "grade", "refine", "web")),
            *((*branch, name) for name in ("rewrite", "search", "read_pages", "select")),
            branch,
        }
        found = {run.name: (path[-2:-1], run.run_type) for path, run in runs.items()}
        assert found["shelf"] == (("retrieve",), "retriever")
        assert found["writer"] == (("rewrite",), "llm")
        assert found["archive"] == (("search",), "tool")
        assert {"crag", "mine"} <= set(runs[graph].tags or [])
        assert runs[graph].metadata["crag_settings"] == {"strips_kept": 3}
        assert runs[*graph, "grade"].metadata["user"] == "7"
