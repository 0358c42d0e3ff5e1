"""Every graph of the registry is built, and answers alike in every way to call it."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from crag.answering.support import WordAttributor
from crag.errors import SettingsError
from crag.graph_registry import GRAPHS, graph_named
from crag.reflection.backends.embedded import EmbeddedReflection
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeReflection, fake_candidate
from tests.graph.reflective import goes_on, plain, state_by


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_is_built_under_its_name(make_parts: Any, name: str) -> None:
    parts = make_parts(reflection=FakeReflection({}))
    assert graph_named(name.replace("_", "-")).build(parts).get_name() == name


@pytest.mark.parametrize("score", [0.9, 0.0, -0.9])
@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "short") for name in GRAPHS]
    + [(name, "long") for name in GRAPHS if name.startswith("self_")],
)
async def test_all_ways_to_call_a_graph_agree(
    make_parts: Any, name: str, score: float, form: str
) -> None:
    states = []
    for way in ("invoke", "ainvoke", "stream", "astream"):
        model = FakeChatModel(replies=["first program", "Ada Lovelace did [1]."])
        parts = make_parts(score, model=model, reflection=FakeReflection(goes_on))
        states.append(plain(await state_by(way, GRAPHS[name].build(parts), form=form)))
    assert states[1:] == [states[0]] * 3


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_that_another_graph_wrote_is_of_the_next_question(
    make_parts: Any, name: str
) -> None:
    asked = {"question": "Who wrote the first program?"}
    thread = {"configurable": {"thread_id": "1"}}

    def build(name: str, kept: InMemorySaver) -> Any:
        model = FakeChatModel(replies=["Ada Lovelace [1]."] * 9)
        parts = make_parts(0.0, reflection=FakeReflection(goes_on), model=model)
        return GRAPHS[name].build(parts, checkpointer=kept)

    alone = plain(build(name, InMemorySaver()).invoke(asked, thread))
    for before in GRAPHS:
        kept = InMemorySaver()
        build(before, kept).invoke({"question": "Who was Babbage?"}, thread)
        after = plain(build(name, kept).invoke(asked, thread))
        assert alone == after, before


def test_every_graph_that_quotes_is_as_sure_as_the_quoter(make_parts: Any) -> None:
    def outcome(name: str, *, sure: bool) -> str | None:
        quoter = FakeQuoter(sure=sure)
        reflection = EmbeddedReflection(FakeEvaluator(0.9), quoter)
        parts = make_parts(model=None, quoter=quoter, reflection=reflection)
        asked = {"question": "Who wrote the first program?"}
        state = GRAPHS[name].build(parts).invoke(asked)
        found: str | None = state.get("outcome")
        return found

    quoting = [name for name in GRAPHS if outcome(name, sure=True) == "answered"]
    assert {"crag", "self_rag", "self_crag"} <= {*quoting}
    assert {outcome(name, sure=False) for name in quoting} == {"likely"}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("question", ["Who wrote it?", "Who wrote it? Who designed the engine?"])
def test_no_graph_shows_what_a_model_made_up(make_parts: Any, name: str, question: str) -> None:
    made_up = "Kettles boil in Greenland."
    parts = make_parts(
        model=FakeChatModel(replies=[made_up]),
        quoter=FakeQuoter(sure=False),
        reflection=FakeReflection(lambda *_: fake_candidate(made_up)),
        attributor=WordAttributor(),
    )
    state = GRAPHS[name].build(parts).invoke({"question": question})
    assert made_up.rstrip(".") not in state["answer"]
    assert state["outcome"] == "likely"
    assert "uncited_answer" in {entry["kind"] for entry in state["events"]}


def test_an_unknown_graph_is_refused_with_the_names_of_others() -> None:
    with pytest.raises(SettingsError, match="choose one of crag, self_crag"):
        graph_named("graph-rag")
