"""What each stream mode carries: everything that a page shows, while it happens."""

from itertools import pairwise
from typing import Any

import pytest

from tests.server.asking import AMBIGUOUS, QUESTION, QUICK, says
from tests.server.chat import ANSWER, QUERY

pytestmark = pytest.mark.slow
MODES = ["updates", "messages-tuple", "values", "tasks"]
WRITTEN = {
    "grade": {"scores", "readings", "thresholds", "action", "events", "usage"},
    "refine": {"internal", "events", "usage"},
    "rewrite": {"query", "events", "usage"},
    "confirm_search": {"query", "refused", "events"},
    "search": {"hits", "events", "usage"},
    "read_pages": {"hits", "pages", "external", "events", "usage"},
    "select": {"external", "events", "usage"},
    "generate": {
        "knowledge", "answer", "abstained", "outcome", "citations", "further", "sentences",
        "messages", "events", "usage",
    },
}  # fmt: skip
"""The keys that each node writes."""
WITHIN = {"rewrite", "confirm_search", "search", "read_pages", "select"}
"""Nodes of the graph within the node `web`."""


class Part:
    """One part of a stream: its mode, the subgraph it comes from, and what it carries."""

    def __init__(self, event: str, data: Any) -> None:
        self.mode, _, namespace = event.partition("|")
        self.within = namespace.partition(":")[0]
        self.data = data


@pytest.fixture(scope="module")
def parts(client: Any) -> list[Part]:
    stream = client.runs.stream(
        None, "crag", input=says(QUESTION), context=AMBIGUOUS, stream_mode=MODES,
        stream_subgraphs=True,
    )  # fmt: skip
    return [Part(part.event, part.data) for part in stream]


def of(parts: list[Part], mode: str) -> list[Part]:
    found = [part for part in parts if part.mode == mode]
    assert found
    return found


def test_updates_carry_what_each_node_wrote(parts: list[Part]) -> None:
    written = {name: part for part in of(parts, "updates") for name in part.data}
    assert set(written) == {"open_run", "retrieve", "web", *WRITTEN}
    for name, keys in WRITTEN.items():
        assert set(written[name].data[name]) == keys, name
        assert written[name].within == ("web" if name in WITHIN else ""), name
    documents = written["retrieve"].data["retrieve"]["documents"]
    assert len(documents) == len(written["grade"].data["grade"]["scores"]) == 2
    assert {"page_content", "metadata", "id"} <= set(documents[0])
    (strip, *_) = written["refine"].data["refine"]["internal"]
    assert set(strip) == {"text", "source", "score", "kept", "reason", "reading", "headings"}
    assert set(strip["source"]) == {"id", "title", "url", "position", "lines"}


def test_messages_carry_the_tokens_of_each_model_call(parts: list[Part]) -> None:
    said: dict[str, list[str]] = {}
    for part in of(parts, "messages"):
        chunk, about = part.data
        said.setdefault(about["langgraph_node"], []).append(chunk["content"])
    assert {node: "".join(chunks).strip() for node, chunks in said.items()} == {
        "rewrite": QUERY, "generate": ANSWER,
    }  # fmt: skip
    assert all(len(list(filter(None, chunks))) > 1 for chunks in said.values())


def test_the_tokens_have_the_id_of_the_message_that_the_chat_keeps(parts: list[Part]) -> None:
    final = of(parts, "values")[-1].data
    chunks = [chunk for chunk, about in (part.data for part in of(parts, "messages"))
              if about["langgraph_node"] == "generate"]  # fmt: skip
    assert {chunk["id"] for chunk in chunks} == {final["messages"][-1]["id"]}
    assert final["messages"][-1]["content"] == final["answer"] == ANSWER


def test_custom_carries_each_judgement_of_reflection_as_it_is_made(client: Any) -> None:
    stream = client.runs.stream(
        None, "self_crag", input={"question": QUESTION}, context=QUICK | {"form": "long"},
        stream_mode=["custom", "updates"], stream_subgraphs=True,
    )  # fmt: skip
    told = [Part(part.event, part.data) for part in stream]
    judged = [part.data["judged"] for part in of(told, "custom")]
    concluded = [part for part in of(told, "updates") if "reflect" in part.data]
    final = concluded[-1].data["reflect"]
    assert [one for part in judged for one in part["choices"]] == final["choices"]
    texts = [one["text"] for part in judged for one in part["critiques"]]
    assert texts == [one["text"] for one in final["critiques"]]
    assert texts
    assert {part.within for part in of(told, "custom")} == {"reflect"}
    first = [part.mode for part in told].index("custom")
    assert first < told.index(concluded[-1])


def test_tasks_tell_when_each_node_begins_and_ends(parts: list[Part]) -> None:
    tasks = of(parts, "tasks")
    begun = {part.data["name"]: part.data["id"] for part in tasks if "input" in part.data}
    ended = {part.data["name"]: part.data for part in tasks if "result" in part.data}
    assert set(begun) == set(ended) == {"open_run", "retrieve", "web", *WRITTEN}
    assert all(begun[name] == ended[name]["id"] for name in begun)
    assert all(ended[name]["error"] is None for name in begun)
    assert ended["grade"]["result"]["action"] == "ambiguous"


def test_values_carry_the_whole_state_after_each_step(parts: list[Part]) -> None:
    values = [part.data for part in of(parts, "values") if not part.within]
    assert [state.get("answer") for state in values] == [None, "", "", "", "", ANSWER]
    assert [state.get("action") for state in values[1:]] == [None] * 2 + ["ambiguous"] * 3
    final = values[-1]
    assert [citation["number"] for citation in final["citations"]] == [1]
    assert final["usage"]["llm_calls"] == 2
    assert final["thresholds"] == {"upper": 1.0, "lower": -1.0}
    assert final["abstained"] is False


def test_messages_mode_gives_each_message_as_it_grows(client: Any) -> None:
    stream = client.runs.stream(
        None, "rag", input={"question": QUESTION}, context={"k": 1}, stream_mode="messages"
    )
    grown = [part.data[0]["content"] for part in stream if part.event == "messages/partial"]
    assert all(later.startswith(sooner) for sooner, later in pairwise(grown))
    assert grown[-1].strip() == ANSWER
    assert len(grown) > 2
