"""The reflect subgraph alone, and as one node of a user's own graph with another state."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from crag.correction.provenance import offered_document
from crag.events import Event
from crag.settings import Settings
from crag.state import Citation, Reflection
from crag.testing import FakeReflection, FakeRetriever, fake_decision
from tests.conftest import DOCUMENTS
from tests.graph.reflective import OWN, QUESTION, WAYS, build_reflect, goes_on, kinds, state_by

OFFERED = [offered_document(document, place) for place, document in enumerate(DOCUMENTS)]
PLAIN: list[Any] = [{"title": p["title"], "text": p["text"]} for p in OFFERED]
FIRST = "Ada Lovelace wrote the first published program"


class Mine(TypedDict, total=False):
    """A state that shares only some names with ours."""

    topic: str
    question: str
    reflection: Reflection
    answer: str
    citations: list[Citation]
    events: Annotated[list[Event], operator.add]
    log: Annotated[list[str], operator.add]


def mine(passages: list[Any], **options: Any) -> Any:
    """Return a user's graph: find → reflect → note."""

    def find(state: Mine) -> Mine:
        return {
            "question": f"Who did {state['topic']}?",
            "reflection": {"passages": passages},
            "log": ["found"],
        }

    def note(state: Mine) -> Mine:
        return {"log": [state["answer"]]}

    graph = StateGraph(Mine, **options)
    graph.add_node("find", find)
    graph.add_node("reflect", build_reflect(FakeReflection(goes_on)))
    graph.add_node("note", note)
    graph.add_edge(START, "find")
    graph.add_edge("find", "reflect")
    graph.add_edge("reflect", "note")
    graph.add_edge("note", END)
    return graph.compile()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("passages", "url"), [(OFFERED, "ada.md"), (PLAIN, "")])
@pytest.mark.parametrize("form", ["short", "long"])
async def test_it_is_a_node_of_a_users_graph(
    way: str, passages: list[Any], url: str, form: str
) -> None:
    graph = mine(passages, context_schema=Settings)
    state = await state_by(way, graph, {"topic": "it"}, form=form)
    assert state["answer"].startswith(f"{FIRST} [1].")
    (cited,) = state["citations"]
    assert (cited["source"]["title"], cited["source"]["url"]) == ("Ada Lovelace", url)
    assert cited["text"] == PLAIN[0]["text"]
    assert state["log"] == ["found", state["answer"]]
    assert state["events"] == []


@pytest.mark.parametrize("form", ["short", "long"])
def test_alone_it_decides_by_itself(form: str) -> None:
    asked = {**QUESTION, "reflection": {"passages": PLAIN}}
    backend = FakeReflection(goes_on, decision=fake_decision(0.1))
    state = build_reflect(backend).invoke(asked, context={"form": form})
    assert len(backend.decided) == 1
    assert (state["answer"], state["reflection"]["choices"][0]["action"]) == (OWN, "no_retrieve")
    assert kinds(state) == ["own_knowledge"]
    assert state["usage"] == {"llm_calls": 2}


@pytest.mark.parametrize("form", ["short", "long"])
@pytest.mark.parametrize("given", [{}, {"reflection": {"passages": []}}])
@pytest.mark.parametrize("retriever", [None, FakeRetriever(), FakeRetriever(error=OSError("gone"))])
def test_where_there_is_nothing_to_read_it_abstains_unless_allowed(
    form: str, given: Any, retriever: Any
) -> None:
    graph = build_reflect(FakeReflection(goes_on), retriever)
    asked = {**QUESTION, **given}
    state = graph.invoke(asked, context={"form": form})
    assert state["outcome"] == "not_found"
    assert state["events"][-1]["detail"] == "there is no knowledge"
    failed = not given and retriever is not None and retriever.error is not None
    assert kinds(state)[:-1] == ["retrieval_failed"] * failed
    state = graph.invoke(asked, context={"form": form, "allow_own_knowledge": True})
    assert (state["answer"], state["citations"]) == (OWN, [])
    assert kinds(state)[-1] == "own_knowledge"
    assert "written without a passage" in state["events"][-1]["detail"]
