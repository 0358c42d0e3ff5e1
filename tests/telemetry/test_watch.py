"""Spans and metrics of runs: what is told of them, once, and what never is."""

import asyncio
import logging
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from opentelemetry.trace import SpanKind, StatusCode

from crag.errors import QuestionError
from crag.graph import build_crag, build_self_rag
from crag.graph_registry import GRAPHS
from crag.langchain import CorrectiveRetriever
from crag.settings import Settings
from crag.state import State
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeReflection,
    FakeRetriever,
)
from tests.conftest import DOCUMENTS, HITS
from tests.telemetry.watching import Watched

QUESTION = "Who wrote the first program?"


@pytest.fixture
def told() -> Watched:
    return Watched()


def config(told: Watched, **more: Any) -> RunnableConfig:
    return RunnableConfig(callbacks=[told.watch], **more)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_question_is_a_tree_of_graph_nodes_models_and_retriever(
    told: Watched, make_parts: Any, way: str
) -> None:
    graph = build_crag(make_parts(0.0))
    given = {"question": QUESTION}
    if way == "invoke":
        graph.invoke(given, config(told))
    else:
        await graph.ainvoke(given, config(told))
    root, chat = "invoke_workflow crag", "chat FakeChatModel"
    assert told.tree == {
        (None, root), (root, "open_run"), (root, "retrieve"),
        ("retrieve", "retrieval FakeRetriever"),
        (root, "grade"), (root, "refine"), (root, "web"), (root, "generate"),
        *(("web", name) for name in ("rewrite", "search", "read_pages")),
        ("web", "select"), ("rewrite", chat), ("generate", chat),
    }  # fmt: skip
    assert len({one.context.trace_id for one in told.spans if one.context}) == 1
    assert told.span(root) | {
        "gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "crag",
        "crag.action": "ambiguous", "crag.outcome": "answered", "crag.usage.llm_calls": 2,
    } == told.span(root)  # fmt: skip
    assert told.span("retrieval FakeRetriever")["crag.documents"] == len(DOCUMENTS)
    nodes = {(labels["crag.graph"], labels["crag.node"]): count
             for labels, count in told.points("crag.node.duration")}  # fmt: skip
    assert set(nodes.values()) == {1}
    assert {("crag", "grade"), ("crag", "web"), ("crag", "select")} <= set(nodes)


def test_a_question_counts_once_with_its_action_usage_and_events(
    told: Watched, make_parts: Any
) -> None:
    spoken = AIMessage(
        "Ada Lovelace did [1][9].",
        usage_metadata={"input_tokens": 40, "output_tokens": 5, "total_tokens": 45},
    )
    graph = build_crag(make_parts(model=GenericFakeChatModel(messages=iter([spoken] * 2))))
    for _ in range(2):
        graph.invoke({"question": QUESTION}, config(told))
    labels = {"crag.graph": "crag", "crag.outcome": "answered"}
    assert told.points("crag.questions") == [({**labels, "crag.action": "correct"}, 2)]
    assert told.points("crag.question.duration") == [(labels, 2)]
    usage = {label["crag.usage.name"]: much for label, much in told.points("crag.usage")}
    assert usage | {"llm_calls": 2, "input_tokens": 80, "output_tokens": 10} == usage
    kind = {"crag.event.kind": "citation_removed", "crag.node": "generate", "crag.graph": "crag"}
    assert told.points("crag.events") == [(kind, 2)]
    model = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "genericfakechatmodel",
        "gen_ai.request.model": "GenericFakeChatModel",
    }  # fmt: skip
    assert told.points("gen_ai.client.operation.duration") == [(model, 2)]
    assert told.points("gen_ai.client.token.usage") == [
        ({**model, "gen_ai.token.type": kind}, 2) for kind in ("input", "output")
    ]
    spans = [one for one in told.spans if one.name == "chat GenericFakeChatModel"]
    assert [one.kind for one in spans] == [SpanKind.CLIENT] * 2
    assert dict(spans[0].attributes or {})["gen_ai.usage.output_tokens"] == 5


def test_what_a_client_writes_into_a_state_is_no_label(told: Watched, make_parts: Any) -> None:
    graph = build_crag(make_parts(), checkpointer=InMemorySaver())
    here = config(told) | {"configurable": {"thread_id": "7"}}
    graph.invoke({"question": QUESTION}, here)
    written = [
        {"kind": kind, "node": node, "detail": "", "fallback": ""}
        for kind, node in [("my salary", "grade"), ("abstained", "my salary")]
    ]
    graph.update_state(here, {"events": written, "usage": {"my salary": 1}}, as_node="grade")
    graph.invoke(None, here)
    kinds = {
        (labels["crag.event.kind"], labels["crag.node"]) for labels, _ in told.points("crag.events")
    }
    assert kinds >= {("other", "grade"), ("abstained", "other")}
    assert "my salary" not in told.everything()


def test_no_text_and_no_key_is_told_even_when_parts_fail(
    told: Watched, make_parts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = ConnectionError("refused sk-planted-0123456789abcdef for the analytical engine")
    failing = make_parts(
        0.0, retriever=FakeRetriever(documents=list(DOCUMENTS), error=error),
        model=FakeChatModel(error=error),
    )  # fmt: skip
    with caplog.at_level(logging.INFO, "crag.telemetry"):
        for parts in (failing, make_parts(0.0)):
            build_crag(parts).invoke({"question": QUESTION}, config(told))
    lines = [str(vars(one)) for one in caplog.records if one.name.startswith("crag.telemetry")]
    assert len(lines) == 2
    seen = told.everything() + "".join(lines)
    texts = [QUESTION, "planted", "refused", "analytical", "Ada ", HITS[0].url, HITS[0].snippet]
    assert [text for text in texts if text.lower() in seen.lower()] == []
    failed = [one for one in told.spans if one.status.status_code == StatusCode.ERROR]
    assert {one.name for one in failed} == {"retrieval FakeRetriever", "chat FakeChatModel"}
    for one in failed:
        assert dict(one.attributes or {})["error.type"] == "ConnectionError"
        assert (one.status.description, list(one.events)) == (None, [])
    kinds = {labels["crag.event.kind"] for labels, _ in told.points("crag.events")}
    assert {"retrieval_failed", "rewrite_failed", "model_failed"} <= kinds


def test_a_run_that_waits_for_a_human_is_no_error_and_counts_when_it_ends(
    told: Watched, make_parts: Any
) -> None:
    graph = build_crag(make_parts(-0.9), checkpointer=InMemorySaver())
    here = config(told, configurable={"thread_id": "7"})
    graph.invoke({"question": QUESTION}, here, context=Settings(confirm_web=True))
    assert told.points("crag.questions")[0][0]["crag.outcome"] == "interrupted"
    assert told.points("crag.usage") == []
    assert told.span("confirm_search")["crag.interrupted"] is True
    assert told.span("invoke_workflow crag")["gen_ai.conversation.id"] == "7"
    assert all(one.status.status_code == StatusCode.UNSET for one in told.spans)
    graph.invoke(Command(resume="approve"), here, context=Settings(confirm_web=True))
    outcomes = {labels["crag.outcome"]: much for labels, much in told.points("crag.questions")}
    assert outcomes == {"interrupted": 1, "answered": 1}


def test_thanks_count_as_no_answer(told: Watched, make_parts: Any) -> None:
    build_crag(make_parts()).invoke({"question": "Many thanks!"}, config(told))
    ((labels, count),) = told.points("crag.questions")
    assert (labels["crag.outcome"], count) == ("nothing_asked", 1)


async def test_a_run_that_fails_or_is_cancelled_says_so(told: Watched, make_parts: Any) -> None:
    graph = build_crag(make_parts())
    with pytest.raises(QuestionError):
        graph.invoke({"question": " "}, config(told))

    class Sleeping(FakeRetriever):
        async def _aget_relevant_documents(self, *_: Any, **__: Any) -> Any:
            entered.set()
            await asyncio.sleep(60)

    entered = asyncio.Event()
    slow = build_crag(make_parts(retriever=Sleeping()))
    task = asyncio.create_task(slow.ainvoke({"question": QUESTION}, config(told)))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = {labels["crag.outcome"]: labels["error.type"]
             for labels, _ in told.points("crag.questions")}  # fmt: skip
    assert found == {"error": "QuestionError", "cancelled": "CancelledError"}
    assert told.watch._runs == {}  # noqa: SLF001 - nothing of a lost run is kept


def test_graphs_within_graphs_count_once(told: Watched, make_parts: Any) -> None:
    outer = StateGraph(State)
    outer.add_node("crag", build_crag(make_parts()))
    outer.add_edge(START, "crag")
    outer.compile(name="mine").invoke({"question": QUESTION}, config(told, run_name="anything"))
    (found,) = told.points("crag.questions")
    assert (found[0]["crag.graph"], found[1]) == ("crag", 1)
    assert (None, "invoke_workflow anything") in told.tree
    assert ("invoke_workflow anything", "crag") in told.tree
    assert {labels["crag.graph"] for labels, _ in told.points("crag.node.duration")} == {"crag"}


def test_what_the_user_wraps_belongs_to_the_same_trace(told: Watched) -> None:
    @tool
    def ask(question: str) -> str:
        """Ask."""
        return str(len(retriever.invoke(question)))

    retriever = CorrectiveRetriever(
        retriever=FakeRetriever(documents=list(DOCUMENTS)), evaluator=FakeEvaluator(0.9)
    )
    model = FakeListLLM(responses=["yes"])
    chain = RunnableLambda(lambda question: model.invoke(question) and ask.invoke(question))
    chain.invoke(QUESTION, config(told))
    retrieval, graph = "retrieval CorrectiveRetriever", "invoke_workflow knowledge"
    assert {
        (None, "execute_tool ask"), ("execute_tool ask", retrieval), (graph, "grade"),
        (None, "text_completion FakeListLLM"),
    } <= told.tree  # fmt: skip
    assert told.points("crag.questions")[0][0]["crag.outcome"] == "no_answer"


def test_reflection_counts_its_tokens(told: Watched, make_parts: Any) -> None:
    graph = build_self_rag(make_parts(reflection=FakeReflection({})))
    state = graph.invoke({"question": QUESTION}, config(told))
    usage = {label["crag.usage.name"]: much for label, much in told.points("crag.usage")}
    assert usage == {name: much for name, much in state["usage"].items() if much}
    assert ("reflect", "short_form") in told.tree


@pytest.mark.parametrize("name", GRAPHS)
def test_each_graph_counts_as_one_question_under_its_name(
    told: Watched, make_parts: Any, name: str
) -> None:
    graph = GRAPHS[name].build(make_parts(0.0, reflection=FakeReflection({})))
    state = graph.invoke({"question": QUESTION}, config(told))
    ((labels, count),) = told.points("crag.questions")
    assert (labels["crag.graph"], count) == (name, 1)
    usage = {label["crag.usage.name"]: much for label, much in told.points("crag.usage")}
    assert usage == {name: much for name, much in state["usage"].items() if much}


@pytest.mark.parametrize(
    ("end", "told_of"),
    [
        ("on_chain_end", {}),
        ("on_chain_error", ValueError("x")),
        ("on_llm_end", LLMResult(generations=[])),
        ("on_llm_error", ValueError("x")),
        ("on_retriever_end", []),
        ("on_retriever_error", ValueError("x")),
        ("on_tool_end", "x"),
        ("on_tool_error", ValueError("x")),
    ],
)
def test_the_end_of_what_began_before_the_watch_is_nothing(
    told: Watched, end: str, told_of: Any
) -> None:
    before = told.metrics
    getattr(told.watch, end)(told_of, run_id=uuid4())
    assert (told.spans, told.metrics) == ([], before)
