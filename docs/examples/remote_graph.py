"""A served graph as a Runnable: in a chain, and as the tool of an agent.

langgraph dev --no-browser                    # in another terminal
python docs/examples/remote_graph.py [--url http://127.0.0.1:2024] [QUESTION]
"""

import argparse
import os
from operator import itemgetter

from langchain_core.runnables import RunnablePassthrough
from langgraph.pregel.remote import RemoteGraph

from crag.langchain import as_tool

QUESTION = "What happens when every retrieved document scores below the lower threshold?"


def main() -> None:
    """Use it in three ways: streamed, in a chain, and as a tool."""
    parser = argparse.ArgumentParser(description="Ask a served graph.")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--url", default="http://127.0.0.1:2024", help="where the graphs are served"
    )
    arguments = parser.parse_args()
    token = os.environ.get("CRAG_SERVE_TOKEN")
    graph = RemoteGraph("crag", url=arguments.url, api_key=token)

    # A tool returns errors, such as a server that is down, instead of raising.
    tool = as_tool(graph, settings={"strips_kept": 3})
    call = {"name": tool.name, "args": {"question": arguments.question}, "id": "1"}
    reply = tool.invoke({**call, "type": "tool_call"})
    print(f"{tool.name} ({reply.status}):\n{reply.text}")
    if reply.status == "error":
        raise SystemExit(f"Is the server up at {arguments.url}? Start it with: langgraph dev")

    steps = graph.stream({"question": arguments.question}, stream_mode="updates")
    print("steps:", " ".join(name for step in steps for name in step))

    chain = {"question": RunnablePassthrough()} | graph | itemgetter("action")
    print("action:", chain.invoke(arguments.question))


if __name__ == "__main__":
    main()
