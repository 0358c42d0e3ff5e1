"""A graph whose nodes take a while, and count how often they began."""

import time
from collections import Counter
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph, add_messages
from typing_extensions import TypedDict

BEGUN: Counter[str] = Counter()
"""How often each node began, by question."""


class Slow(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    question: str
    answer: str


def slow(seconds: float) -> Any:
    """Return a graph of five nodes, each of which takes as long."""

    def node(name: str) -> Any:
        def run(state: Slow) -> Slow:
            question = state["messages"][-1].content
            BEGUN[f"{question} {name}"] += 1
            time.sleep(seconds)
            return {"answer": question, "question": question}

        return run

    graph = StateGraph(Slow)
    names = [f"node{number}" for number in range(5)]
    for name, before in zip(names, [START, *names], strict=False):
        graph.add_node(name, node(name))
        graph.add_edge(before, name)
    graph.add_edge(names[-1], END)
    return graph.compile()
