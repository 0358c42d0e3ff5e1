"""Answer a question that has one part with the graph of Corrective RAG."""

from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable

from crag.nodes.decompose import is_behind_another
from crag.runtime.waiting import call
from crag.settings import Settings
from crag.state import State

_OWN = ("question", "posed", "follow_up", "sub_questions", "messages")
"""What the run itself has written."""


@dataclass(frozen=True)
class AnswerWhole:
    """Run the graph on the question, and write all that it wrote."""

    graph: Runnable[Any, Any]

    async def run(self, state: State, settings: Settings) -> State:
        """Write what the graph wrote."""
        inputs, limited = _input(state), _limited(state, settings)
        found = await call(self.graph.invoke, self.graph.ainvoke, inputs, context=limited)
        kept: Any = {name: value for name, value in found.items() if name not in _OWN}
        kept["events"] = [one for one in found["events"] if one["node"] != "contextualize"]
        if replies := found.get("messages", [])[len(inputs.get("messages", [])) :]:
            kept["messages"] = replies
        return cast("State", kept)


def _input(state: State) -> dict[str, Any]:
    asks_in_chat = bool(state.get("messages")) and isinstance(state["messages"][-1], HumanMessage)
    if asks_in_chat and is_behind_another(state):  # It is completed in the same way again.
        return {"messages": state["messages"]}
    if asks_in_chat:  # Without its history: the question is self-contained.
        return {"messages": [HumanMessage(state["question"])]}
    return {"question": state["question"]}


def _limited(state: State, settings: Settings) -> Settings:
    left = max(0, settings.calls_left(state))
    confirms = settings.confirm_web or state.get("confirms", False)
    return settings.model_copy(update={"max_llm_calls": left, "confirm_web": confirms})
