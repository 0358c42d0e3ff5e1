"""A server whose graph walks for a second, step by step, and writes down each step in its state."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from starlette.applications import Starlette

from crag.page.rules import Rules
from crag.server.app import create

STEPS = ("first", "second", "third", "fourth")


class Walk(TypedDict, total=False):
    question: str
    steps: Annotated[list[str], operator.add]
    answer: str


def walking() -> Starlette:
    """Build the application; its database is that of the environment."""
    built = StateGraph(Walk)
    for before, name in zip((START, *STEPS), STEPS, strict=False):
        built.add_node(name, step(name))
        built.add_edge(before, name)
    graph: Any = built.compile()
    return create(graphs={"crag": graph}, rules=Rules())


def step(name: str) -> Any:
    async def walk(state: Walk) -> Walk:
        await asyncio.sleep(0.25)
        return {"steps": [name], "answer": f"{state['question']} {name}"}

    return walk
