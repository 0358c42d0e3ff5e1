"""A whole graph as one step of an LCEL chain.

    python docs/examples/graph_in_chain.py

Needs no key and no network: the answer quotes the documents.
"""

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag
from crag.models.encoder import packaged_encoder
from crag.parts import Parts
from crag.settings import Settings
from crag.state import State

DOCUMENTS = [
    Document(
        "The lighthouse of Cape Merrow was designed by Edith Halloran. It was lit in 1871.",
        metadata={"title": "Cape Merrow", "source": "merrow.txt"},
    ),
    Document(
        "Salt was carried inland on old roads. Each cart paid a toll.",
        metadata={"title": "Salt roads", "source": "salt.txt"},
    ),
]
QUESTIONS = ["Who designed the lighthouse of Cape Merrow?", "How deep is Lake Baikal?"]


def build_chain() -> Runnable[str, str]:
    """Build question → graph → text; `bind` gives every run the same settings."""
    evaluator = load_evaluator()
    store = InMemoryVectorStore.from_documents(DOCUMENTS, packaged_encoder())
    parts = Parts(
        retriever=store.as_retriever(),
        evaluator=evaluator,
        quoter=ExtractiveAnswerer(evaluator),  # or `model`, any LangChain chat model
    )
    graph = build_crag(parts).bind(context=Settings(k=4, strips_kept=3))
    return {"question": RunnablePassthrough()} | graph | shown


def shown(state: State) -> str:
    """Write the answer with the action and its sources."""
    sources = [f"[{cited['number']}] {cited['source']['url']}" for cited in state["citations"]]
    return " ".join([f"{state['action']}:", state["answer"], *sources])


def main() -> None:
    """Ask all questions in one batch."""
    for question, answer in zip(QUESTIONS, build_chain().batch(QUESTIONS), strict=True):
        print(f"{question}\n  {answer}")


if __name__ == "__main__":
    main()
