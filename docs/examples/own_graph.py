"""Corrective RAG as a node of your own graph, with your own state.

    python docs/examples/own_graph.py

Needs no key and no network.
"""

from typing import TypedDict

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

import crag
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.models.encoder import packaged_encoder
from crag.parts import Parts

DOCUMENTS = [
    Document(
        "The heron nests in tall trees near water. It lays three to five eggs in April.",
        metadata={"title": "Heron", "source": "heron.txt"},
    ),
    Document(
        "The wren builds several nests. It is among the smallest birds of Europe.",
        metadata={"title": "Wren", "source": "wren.txt"},
    ),
]


class Note(TypedDict, total=False):
    """The state of your graph; it shares no key with ours."""

    bird: str
    found: str
    sources: list[str]
    known: bool
    text: str


class Research:
    """Map your state to ours and back, around one run of the graph."""

    def __init__(self) -> None:
        evaluator = load_evaluator()
        store = InMemoryVectorStore.from_documents(DOCUMENTS, packaged_encoder())
        parts = Parts(
            retriever=store.as_retriever(),
            evaluator=evaluator,
            quoter=ExtractiveAnswerer(evaluator),
        )
        self._documents = crag.open(parts=parts, settings={"k": 4})

    def __call__(self, state: Note) -> Note:
        """Ask where the bird nests."""
        question = f"Where does the {state['bird']} nest?"
        answer = self._documents.ask(question)
        sources = [cited["source"]["url"] for cited in answer.citations]
        return Note(found=answer.answer, sources=sources, known=answer.outcome == "answered")


def write(state: Note) -> Note:
    """Write the note from your own keys."""
    if not state["known"]:
        return Note(text=f"{state['bird']}: somebody has to go and look")
    return Note(text=f"{state['bird']}: {state['found']} {', '.join(state['sources'])}")


def build_graph() -> CompiledStateGraph[Note, None, Note, Note]:
    """Build research → write."""
    graph = StateGraph(Note)
    graph.add_node("research", Research())
    graph.add_node("write", write)
    graph.add_edge(START, "research")
    graph.add_edge("research", "write")
    graph.add_edge("write", END)
    return graph.compile(name="field_guide")


def main() -> None:
    """Write two notes, and stream the steps of the inner graph."""
    graph = build_graph()
    for bird in ("heron", "penguin"):
        print(graph.invoke({"bird": bird})["text"])
    steps = graph.stream({"bird": "wren"}, stream_mode="updates", subgraphs=True)
    print("steps:", " ".join(name for _, update in steps for name in update))


if __name__ == "__main__":
    main()
