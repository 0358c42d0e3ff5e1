"""Time travel: a finished run is forked at `grade`, with other values, and runs on from there."""

from copy import deepcopy
from typing import Any

import pytest
from langgraph_sdk.errors import BadRequestError

from tests.server.asking import INPUT, QUICK, new_thread
from tests.server.chat import QUERY

pytestmark = pytest.mark.slow
CORRECT = QUICK | {"upper": -1.0, "lower": -1.0}
EDITED = {
    "page_content": "The keeper of Quellmoor is Ilse Brandt.",
    "metadata": {"title": "Quellmoor", "source": "edited.md"},
}


class Past:
    """A finished run with the action Correct, and its checkpoints."""

    def __init__(self, client: Any) -> None:
        self.client, self.thread = client, new_thread(client)
        self.state = client.runs.wait(self.thread, "crag", input=INPUT, context=CORRECT)
        assert self.state["action"] == "correct"
        self.checkpoints = {
            tuple(found["next"]): found["checkpoint"]
            for found in client.threads.get_history(self.thread)
        }

    def fork(self, values: dict[str, Any], node: str) -> dict[str, Any]:
        """Write values as `node` where the run was about to grade; return the new checkpoint."""
        before = self.checkpoints[("grade",)]
        forked = self.client.threads.update_state(
            self.thread, values, as_node=node, checkpoint=before
        )
        found: dict[str, Any] = forked["checkpoint"]
        return found

    def go_on(self, checkpoint: dict[str, Any], **settings: Any) -> dict[str, Any]:
        """Run on from a checkpoint; the nodes that ran stand in `ran`."""
        ran: list[str] = []
        stream = self.client.runs.stream(
            self.thread, "crag", input=None, checkpoint=checkpoint, context=CORRECT | settings,
            stream_mode="updates",
        )  # fmt: skip
        for part in stream:
            assert part.event != "error", part.data
            ran += part.data if part.event == "updates" else []
        found: dict[str, Any] = self.client.threads.get_state(self.thread)["values"]
        return found | {"ran": ran}


@pytest.fixture(scope="module")
def past(client: Any) -> Past:
    return Past(client)


def test_other_scores_and_another_action_take_the_other_branch(past: Past) -> None:
    fork = past.fork({"scores": [-1.0, -1.0], "action": "incorrect"}, "grade")
    state = past.client.threads.get_state(past.thread, checkpoint=fork)
    assert (state["next"], state["values"]["action"]) == (["web"], "incorrect")
    state = past.go_on(fork)
    assert state["ran"] == ["web", "generate"]
    assert (state["action"], state["scores"]) == ("incorrect", [-1.0, -1.0])
    assert (state["internal"], state["query"]) == ([], QUERY)
    assert state["external"][0]["text"].startswith("Corrective RAG searches the web")
    assert state["answer"]


def test_ambiguous_takes_both_branches(past: Past) -> None:
    state = past.go_on(past.fork({"action": "ambiguous"}, "grade"))
    assert sorted(state["ran"]) == ["generate", "refine", "web"]
    assert state["internal"]
    assert state["external"]


def test_edited_documents_are_refined(past: Past) -> None:
    values = {"documents": [EDITED], "scores": [0.9], "action": "correct"}
    state = past.go_on(past.fork(values, "grade"))
    assert state["ran"] == ["refine", "generate"]
    (strip,) = state["internal"]
    assert (strip["text"], strip["source"]["url"]) == (EDITED["page_content"], "edited.md")
    (citation,) = state["citations"]
    assert citation["text"] == EDITED["page_content"]


def test_edited_documents_are_graded_again_where_retrieve_wrote_them(past: Past) -> None:
    edited = deepcopy(past.state["documents"][:1])  # As an editor sends back what it was sent.
    edited[0]["page_content"] = "Cats sleep a lot in winter."
    edited[0]["metadata"] |= {"title": ""}
    state = past.go_on(past.fork({"documents": edited}, "retrieve"), upper=0.5, lower=0.0)
    assert state["ran"] == ["grade", "web", "generate"]
    assert (len(state["scores"]), state["action"]) == (1, "incorrect")
    assert state["documents"] == edited


def test_other_settings_are_tried_from_the_same_place(past: Past) -> None:
    state = past.go_on(past.checkpoints[("grade",)], upper=1.0, lower=-1.0)
    assert state["action"] == "ambiguous"
    assert state["scores"] == pytest.approx(past.state["scores"])
    assert state["documents"] == past.state["documents"]


@pytest.mark.parametrize(
    ("values", "node", "told"),
    [
        ({"action": "perhaps"}, "grade", "action cannot be 'perhaps': allowed are correct"),
        ({"documents": ["text"]}, "retrieve", "documents must each have a `page_content`"),
        ({"documents": [{"metadata": {}}]}, "retrieve", "page_content"),
        ({"messages": [{"role": "wizard", "content": "?"}]}, "generate", "Unexpected message type"),
        ({"usage": {"pages": "two"}}, "grade", "usage.pages cannot be 'two'"),
        ({"usage": None}, "grade", "usage cannot be None"),
        ({"events": ["text"]}, "grade", "events must be a list"),
        ({"action": "correct"}, "graed", "Node graed does not exist"),
    ],
)
def test_what_no_node_could_have_written_is_refused(
    past: Past, values: dict[str, Any], node: str, told: str
) -> None:
    with pytest.raises(BadRequestError, match=told.replace("`", ".")):
        past.fork(values, node)
