"""Runs that reflect as they are called, streamed, kept on a thread, and gone on with."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from crag.settings import Settings
from crag.testing import FakeReflection
from tests.graph.reflective import (
    QUESTION,
    build_self_rag,
    goes_on,
    plain,
    reflecting,
)


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
