"""Corrective RAG as the tool of an agent.

    python docs/examples/agent_tool.py

Needs no key and no network: the tool is real; in the place of your chat model stands one that
calls the tool once, and then ends with what the tool said.
"""

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag
from crag.langchain import as_tool
from crag.models.encoder import packaged_encoder
from crag.parts import Parts

DOCUMENTS = [
    Document(
        "The ferry to Orrin leaves at seven in the morning. It carries twelve cars.",
        metadata={"title": "Ferries", "source": "ferries.txt", "position": "line 4"},
    ),
    Document(
        "Orrin has two bakeries. Both are closed on Mondays.",
        metadata={"title": "Shops of Orrin", "source": "shops.txt", "position": "line 1"},
    ),
]
QUESTIONS = ["When does the ferry to Orrin leave?", "Who was the first mayor of Orrin?"]


def build_tool() -> BaseTool:
    """Make the tool; an agent sees its name, description and one argument."""
    evaluator = load_evaluator()
    store = InMemoryVectorStore.from_documents(DOCUMENTS, packaged_encoder())
    parts = Parts(
        retriever=store.as_retriever(),
        evaluator=evaluator,
        quoter=ExtractiveAnswerer(evaluator),
    )
    return as_tool(build_crag(parts), name="ask_island_guide", settings={"k": 4})


def think(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Fake a model: replace this by ``model.bind_tools([tool]).invoke(state["messages"])``."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(f"The guide says:\n{last.text}")]}
    call = {"name": "ask_island_guide", "args": {"question": last.text}, "id": "call-1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def build_agent(
    tool: BaseTool,
) -> CompiledStateGraph[MessagesState, None, MessagesState, MessagesState]:
    """Build the loop of model and tools."""
    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(name="agent")


def main() -> None:
    """Run the agent, and print the trace that came with the answer."""
    agent = build_agent(build_tool())
    for question in QUESTIONS:
        messages = agent.invoke({"messages": [HumanMessage(question)]})["messages"]
        print(question)
        print(messages[-1].text)
        for message in messages:
            if isinstance(message, ToolMessage):
                trace = message.artifact
                scores = [round(one.metadata["score"], 1) for one in trace["documents"]]
                print("artifact:", trace["action"], scores)


if __name__ == "__main__":
    main()
