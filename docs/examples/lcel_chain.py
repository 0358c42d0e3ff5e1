"""An existing LCEL chain, corrected by one line.

    python docs/examples/lcel_chain.py

Needs no key and no network: the vector store, the encoder and the evaluator are real; in the place
of your chat model stands one that only says how many words it was given.
"""

from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from crag.langchain import CorrectiveRetriever
from crag.models.encoder import packaged_encoder

DOCUMENTS = [
    Document(
        "Ada Lovelace was born in London in 1815. Her mother had her taught mathematics. In 1843 "
        "she published notes on the Analytical Engine. The last of them, Note G, lists the steps "
        "by which the engine would compute Bernoulli numbers. She died in 1852.",
        metadata={"title": "Ada Lovelace", "source": "lovelace.txt"},
    ),
    Document(
        "The Analytical Engine was designed by Charles Babbage from 1834 on. It had a store for "
        "numbers and a mill that worked on them. It was never finished.",
        metadata={"title": "Analytical Engine", "source": "engine.txt"},
    ),
    Document(
        "Bernoulli numbers are a sequence of rational numbers. They occur in the series of the "
        "tangent and in formulas for sums of powers.",
        metadata={"title": "Bernoulli numbers", "source": "numbers.txt"},
    ),
    Document(
        "A kettle boils water. Most kettles switch themselves off when the water boils.",
        metadata={"title": "Kettle", "source": "kettle.txt"},
    ),
]
QUESTIONS = [
    "What does Ada Lovelace's Note G list?",
    "Who won the chess world championship in 1972?",
]
PROMPT = ChatPromptTemplate.from_template(
    "Answer from the context alone.\n\nContext:\n{context}\n\nQuestion: {question}"
)


def counting_model(prompt: PromptValue) -> str:
    """Fake a chat model; use your own instead."""
    return f"(a model would answer from a prompt of {len(prompt.to_string().split())} words)"


def joined(documents: Sequence[Document]) -> str:
    """Format documents as the context of a prompt."""
    return "\n\n".join(document.page_content for document in documents)


def build_chain(retriever: BaseRetriever) -> Runnable[str, str]:
    """Build a usual RAG chain."""
    inputs = {"context": retriever | joined, "question": RunnablePassthrough()}
    return inputs | PROMPT | RunnableLambda(counting_model) | StrOutputParser()


def main() -> None:
    """Run the same chain with and without correction."""
    store = InMemoryVectorStore.from_documents(DOCUMENTS, packaged_encoder())
    plain = store.as_retriever(search_kwargs={"k": 4})
    corrected = CorrectiveRetriever(retriever=plain)  # This is the one line.
    for question in QUESTIONS:
        print(question)
        print("  plain:    ", build_chain(plain).invoke(question))
        print("  corrected:", build_chain(corrected).invoke(question))
        for found in corrected.invoke(question):
            shown = {name: found.metadata[name] for name in ("action", "score", "title")}
            print("    kept:", found.page_content, shown)
        for event in corrected.correct(question)["events"]:
            print("    event:", event["kind"])


if __name__ == "__main__":
    main()
