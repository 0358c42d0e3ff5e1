"""What asks nothing gets a reply, without a search."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from crag.graph import build_crag
from crag.graph_registry import OFFERED, GraphEntry
from crag.papers.settings import PaperSettings
from crag.papers.tasks import TASKS
from crag.testing import FakeReflection, fake_candidate

THANKED = "You are welcome. Ask me anything else about the documents."


def reflection() -> FakeReflection:
    return FakeReflection(lambda prefix, _: fake_candidate(f"[Relevant]About {prefix.instruction}"))


@pytest.mark.parametrize("entry", OFFERED.values(), ids=OFFERED)
def test_thanks_in_a_chat_cost_nothing_and_leave_nothing(
    make_parts: Any, entry: GraphEntry
) -> None:
    parts = make_parts(0.9, reflection=reflection())
    graph = entry.build(parts, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    asyncio.run(graph.ainvoke({"messages": [HumanMessage("Who wrote it?")]}, thread))
    asked = len(parts.model.prompts), len(parts.retriever.questions)
    state = asyncio.run(graph.ainvoke({"messages": [HumanMessage("Thanks!")]}, thread))
    assert (state["answer"], state["outcome"], (state["outcome"] == "not_found")) == (
        THANKED, "nothing_asked", False
    )  # fmt: skip
    assert (state["action"], state["citations"], state["events"]) == (None, [], [])
    assert state["messages"][-1].text == THANKED
    assert isinstance(state["messages"][-1], AIMessage)
    assert len(state["messages"]) == 4
    assert (len(parts.model.prompts), len(parts.retriever.questions)) == asked


@pytest.mark.parametrize("task", [task for task in TASKS if task != "default"])
def test_the_papers_tasks_take_it_as_a_question(make_parts: Any, task: str) -> None:
    parts = make_parts(0.9)
    state = build_crag(parts).invoke(
        {"question": "Thanks"}, context=PaperSettings.model_validate({"task": task})
    )
    assert (state["outcome"], parts.retriever.questions) == ("answered", ["Thanks"])
