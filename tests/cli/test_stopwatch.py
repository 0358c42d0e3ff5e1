"""The seconds of nodes and the cost of tokens, measured around a run."""

from io import StringIO
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console

from crag.cli.show import Trace
from crag.cli.stopwatch import Stopwatch
from crag.graph import build_crag
from crag.parts import Hit
from crag.settings import Settings, settings_from
from crag.testing import FakeChatModel, FakeEvaluator, FakeSearcher

PRICES = {"input_price": 2.0, "output_price": 10.0}


class CountingModel(FakeChatModel):
    """Counts 1,000 tokens read and 100 written for each call."""

    def _generate(self, *arguments: Any, **options: Any) -> ChatResult:
        text = super()._generate(*arguments, **options).generations[0].text
        counted = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
        message = AIMessage(content=text, usage_metadata=counted)
        return ChatResult(generations=[ChatGeneration(message=message)])


def parts_for(make_parts: Any) -> Any:
    searcher = FakeSearcher([Hit("Ada", "https://example.org/a", "Ada wrote a program.")])
    return make_parts(model=CountingModel(), evaluator=FakeEvaluator(-0.9), searcher=searcher)


def test_every_node_is_measured_and_the_human_is_not(make_parts: Any) -> None:
    watch = Stopwatch()
    graph = build_crag(parts_for(make_parts), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [watch]}
    settings = Settings(confirm_web=True)
    graph.invoke({"question": "Who?"}, config, context=settings)
    before = watch.seconds
    assert list(before) == ["open_run", "retrieve", "grade", "web:rewrite", "web:confirm_search"]
    graph.invoke(Command(resume="approve"), config, context=settings)
    web = [
        f"web:{name}" for name in ("rewrite", "confirm_search", "search", "read_pages", "select")
    ]
    assert set(watch.seconds) == {"open_run", "retrieve", "grade", "generate", *web}
    assert all(0 <= seconds < 60 for seconds in watch.seconds.values())


@pytest.mark.parametrize("prices", [{}, PRICES, {"output_price": 10.0}])
def test_tokens_are_priced_by_the_settings(make_parts: Any, prices: dict[str, float]) -> None:
    graph = build_crag(parts_for(make_parts), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(2):  # The second question on the thread starts anew.
        state = graph.invoke({"question": "Who?"}, config, context=settings_from(prices))
    usage = state["usage"]
    assert (usage["llm_calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 2000, 200)
    read, written = prices.get("input_price", 0), prices.get("output_price", 0)
    assert usage.get("cost", 0) == pytest.approx((2000 * read + 200 * written) / 1e6)
    assert ("cost" in usage) == bool(prices)


def test_the_terminal_names_tokens_cost_and_seconds(make_parts: Any) -> None:
    console = Console(record=True, width=120, file=StringIO())
    trace = Trace(console, verbose=True)
    graph = build_crag(parts_for(make_parts))
    chunk: Any
    for chunk in graph.stream(
        {"question": "Who?"}, context=settings_from(PRICES), stream_mode="updates", subgraphs=True
    ):
        for node, update in chunk[1].items():
            trace.update(node, update)
    trace.spent({"retrieve": 0.5, "generate": 1.25})
    said = console.export_text()
    assert "tokens    2,000 read, 200 written, cost 0.006" in said
    assert "seconds   retrieve 0.50, generate 1.25" in said
