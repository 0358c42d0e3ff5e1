"""Runs that stop and go on: what a human was promised holds, and no round is done twice."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from crag.graph_registry import GRAPHS
from crag.settings import Settings
from crag.testing import FakeQuoter, FakeReflection
from tests.graph.reflective import QUESTION, build_self_rag, goes_on, plain, reflecting, says

THREAD: Any = {"configurable": {"thread_id": "1"}}
STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
"""Reads LangGraph's and LangChain's own types alone, as LANGGRAPH_STRICT_MSGPACK asks."""
TWO_PARTS = "Who wrote the first program? Who built the first engine?"


@pytest.mark.parametrize("method", GRAPHS)
def test_nothing_is_searched_without_the_approval_that_the_first_call_asked_for(
    make_parts: Any, method: str
) -> None:
    given = {"quoter": FakeQuoter(), "reflection": FakeReflection(says), "model": None}
    searching, parts = make_parts(-0.9, **given), make_parts(-0.9, **given)
    GRAPHS[method].build(searching).invoke({"question": TWO_PARTS})
    graph = GRAPHS[method].build(parts, checkpointer=InMemorySaver(serde=STRICT))
    state = graph.invoke({"question": TWO_PARTS}, THREAD, context={"confirm_web": True})
    asked = 0
    while "__interrupt__" in state:
        asked += 1
        state = graph.invoke(Command(resume="refuse"), THREAD)  # Without the settings.
    assert parts.searcher.queries == []
    assert asked == len(searching.searcher.queries)


@pytest.mark.parametrize("method", GRAPHS)
def test_a_state_is_edited_after_any_node(make_parts: Any, method: str) -> None:
    graph = GRAPHS[method].build(
        make_parts(reflection=FakeReflection(says)), checkpointer=InMemorySaver(serde=STRICT)
    )
    chat = [HumanMessage("Who was Ada?"), AIMessage("A writer."), HumanMessage("And of what?")]
    state = graph.invoke({"messages": chat}, THREAD)
    before = graph.get_state(THREAD)
    assert before.values == state
    for node in graph.nodes:
        edited = graph.update_state(before.config, None, as_node=node)
        assert graph.get_state(edited).values == before.values


def test_a_killed_run_goes_on_with_the_round_it_had_begun(make_parts: Any) -> None:
    class Killed(BaseException):
        """Nothing that a run survives."""

    class Mortal(FakeReflection):
        alive = False

        def candidates(self, continuations: Any, limits: Any) -> Any:
            if self.rounds and not self.alive:
                raise Killed
            return super().candidates(continuations, limits)

    backend = Mortal(goes_on)
    graph = build_self_rag(reflecting(make_parts, reflection=backend), checkpointer=InMemorySaver())
    options: Any = {"context": Settings(form="long"), "durability": "sync"}
    thread: Any = {"configurable": {"thread_id": "1"}}
    with pytest.raises(Killed):
        graph.invoke(QUESTION, thread, **options)
    backend.alive = True
    state = graph.invoke(None, thread, **options)
    assert [len(asked) for asked, _ in backend.rounds] == [2, 4]
    whole = build_self_rag(reflecting(make_parts, goes_on)).invoke(
        QUESTION, context={"form": "long"}
    )
    assert plain(state) == plain(whole)


@pytest.mark.parametrize("form", ["short", "long"])
async def test_the_answer_is_streamed_as_one_message(make_parts: Any, form: Any) -> None:
    asked: Any = {"messages": [HumanMessage("Who wrote it?")]}
    options: Any = {"stream_mode": "messages", "subgraphs": True, "context": Settings(form=form)}
    graph = build_self_rag(reflecting(make_parts, goes_on))
    listed = [message for _, (message, _) in graph.stream(asked, **options)]
    awaited = [message async for _, (message, _) in graph.astream(asked, **options)]
    answer = graph.invoke(asked, context=Settings(form=form))["answer"]
    assert [message.text for message in listed if message.type == "ai"] == [answer]
    assert [message.text for message in awaited if message.type == "ai"] == [answer]
