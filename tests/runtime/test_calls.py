"""How nodes run and call their parts: settings, side by side, and what fails."""

import asyncio
import contextvars
import logging
import math
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.outputs import ChatResult
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph

from crag.correction.provenance import unscored
from crag.errors import SettingsError
from crag.events import event
from crag.graph import build_crag
from crag.papers.settings import PaperSettings
from crag.parts import Passage
from crag.runtime.calls import Attempt, filter_strips, judge_passages, plain_documents, within
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import Source, State
from crag.testing import FakeChatModel, FakeEvaluator, FakeReadingEvaluator

QUESTION: Any = {"question": "Who wrote the first program?"}


def asked_within(make_parts: Any, schema: Any, context: Any) -> Any:
    """Return how many documents a node finds in a graph with this schema and context."""
    graph: Any = StateGraph(State, context_schema=schema)
    graph.add_node("crag", build_crag(make_parts()))
    graph.set_entry_point("crag")
    return len(graph.compile().invoke(QUESTION, context=context)["documents"])


@pytest.mark.parametrize("schema", [None, Settings, dict])
def test_settings_reach_a_node_whatever_the_schema_of_the_graph_around(
    make_parts: Any, schema: Any
) -> None:
    assert asked_within(make_parts, schema, {"k": 1}) == 1
    assert asked_within(make_parts, schema, Settings(k=1)) == 1


@pytest.mark.parametrize("context", [None, {}, {"k": 1, "user": "ada"}, "k"])
def test_a_context_of_other_things_leaves_the_defaults(make_parts: Any, context: Any) -> None:
    assert asked_within(make_parts, None, context) == 2


def test_an_invalid_setting_is_refused_there_too(make_parts: Any) -> None:
    with pytest.raises(SettingsError, match="'k' cannot be 0: Input should be"):
        asked_within(make_parts, None, {"k": 0})


async def test_questions_wait_for_the_parts_side_by_side_and_for_no_thread(make_parts: Any) -> None:
    """Each call ends only when all have begun, and a loop has fewer threads than calls."""
    meet, threads_meet = asyncio.Barrier(50), threading.Barrier(50)

    class Evaluator(FakeEvaluator):
        def score(self, question: str, texts: Any) -> list[float]:
            threads_meet.wait(60)
            return super().score(question, texts)

    class Model(FakeChatModel):
        async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            await meet.wait()
            return self._generate(messages)

    model = Model(replies=["Ada did [1]."])
    graph = build_crag(make_parts(model=model, evaluator=Evaluator(0.9)))
    async with asyncio.timeout(60):
        states = await asyncio.gather(*(graph.ainvoke(QUESTION) for _ in range(50)))
    assert {state["answer"] for state in states} == {"Ada did [1]."}


class Started(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *_: Any, name: str = "", **__: Any) -> None:
        self.names.append(name)


async def test_a_cancelled_node_calls_nothing_more() -> None:
    calls = list[int]()
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def node(_state: State, _settings: Settings) -> State:
        try:
            for number in range(2):
                with Attempt("model"):
                    calls.append(number)
                    began.set()
                    goes_on.wait(10)
        finally:
            ended.set()
        return State()

    graph: Any = StateGraph(State).add_node("node", as_node(node)).set_entry_point("node")
    running = asyncio.create_task(graph.compile().ainvoke(QUESTION))
    await asyncio.to_thread(began.wait, 10)
    running.cancel()
    await asyncio.wait({running})
    goes_on.set()
    assert await asyncio.to_thread(ended.wait, 10)
    assert calls == [0]


def test_each_node_stands_once_in_a_trace(make_parts: Any) -> None:
    started = Started()
    build_crag(make_parts()).invoke(QUESTION, {"callbacks": [started]})
    nodes = ["open_run", "retrieve", "grade", "refine", "generate"]
    assert [name for name in started.names if name in nodes] == nodes


NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (OSError("the disk is gone"), "OSError: the disk is gone"),
        (UnprintableError(), "UnprintableError: <UnprintableError that cannot be shown>"),
        (KeyError(), "KeyError"),
        (ValueError("half \ud83d of a pair"), "ValueError: half \ufffd of a pair"),
    ],
)
def test_what_a_part_raises_is_caught_and_can_be_told(
    error: Exception, detail: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), Attempt("part") as attempt:
        raise error
    assert event("model_failed", "generate", attempt.error)["detail"] == detail
    assert caplog.records[0].getMessage().startswith(f"part failed: {type(error).__name__}")
    caplog.clear()  # A report of pytest must be UTF-8.


@pytest.mark.parametrize("error", [KeyboardInterrupt, GraphInterrupt, asyncio.CancelledError])
def test_what_is_not_the_parts_to_decide_is_raised(error: type[BaseException]) -> None:
    with pytest.raises(error), Attempt("part"):
        raise error


def test_documents_are_cut_and_their_metadata_plain() -> None:
    odd = {"path": Path("a.md"), "share": float("nan"), "tags": {"x"}, 1: "one"}
    (document,) = plain_documents([Document("half \ud83d", metadata=odd), Document("b")], 1)
    assert document.page_content == "half \ufffd"
    assert document.metadata == {"path": "a.md", "share": None, "tags": ["x"], "1": "one"}


def raising() -> None:
    raise TimeoutError("of its own")


def test_what_is_in_time_comes_back_and_what_is_late_is_left_to_itself() -> None:
    NAME.set("mine")
    assert within(5, lambda suffix: NAME.get() + suffix, "!") == "mine!"
    with pytest.raises(TimeoutError, match="of its own"):
        within(5, raising)
    goes_on = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 seconds"):
        within(0.05, goes_on.wait, 10)
    goes_on.set()


SOURCE = Source(id="1", title="Title", url="", position="")
UNTITLED = Source(id="2", title="", url="", position="")


def untitled(*texts: str) -> list[Passage]:
    return [Passage("", text) for text in texts]


class Wrong(FakeReadingEvaluator):
    """Returns whatever it was told to."""

    def __init__(self, replies: Any) -> None:
        super().__init__()
        self.read = self.score = lambda *_: replies  # type: ignore[method-assign]


def test_empty_texts_score_lowest_without_the_evaluator() -> None:
    evaluator = FakeEvaluator(0.7)
    scored = judge_passages(evaluator, "q", untitled("", "text", " \n"), node="grade")
    assert scored.scores == [-1, 0.7, -1]
    assert scored.usage == {"evaluator_calls": 1, "evaluated_texts": 1}
    assert evaluator.calls == [("q", ["text"])]
    assert judge_passages(evaluator, "q", [], node="grade") == ([], [], [], {})
    reading = FakeReadingEvaluator()
    scores, (nothing,), events, usage = judge_passages(
        reading, "What?", [Passage("A", " ")], node="grade"
    )
    assert (scores, nothing["score"]) == ([-1.0], -1.0)
    assert (events, usage, reading.read_passages) == ([], {}, [])


@pytest.mark.parametrize(
    "replies", [[], [{"score": 0.9}] * 3, [{"score": 0.9}] * 2, None, ["high", "low"]]
)
def test_a_wrong_reply_scores_everything_lowest(replies: Any) -> None:
    scored = judge_passages(Wrong(replies), "q", untitled("a b", "c d"), node="grade")
    assert scored.scores == [-1.0, -1.0]
    assert [entry["kind"] for entry in scored.events] == ["evaluator_failed"]


def test_nan_costs_only_its_own_text() -> None:
    evaluator = FakeEvaluator({"a": math.nan, "b": 0.4, "c": math.inf})
    scored = judge_passages(evaluator, "q", untitled("a", "b", "c"), node="grade")
    assert scored.scores == [-1.0, 0.4, -1.0]
    assert "a score that is no number" in scored.events[0]["detail"]


def test_an_evaluator_that_raises_is_an_event_and_leaves_no_reading() -> None:
    evaluator = FakeReadingEvaluator(error=RuntimeError("out of memory"))
    scored = judge_passages(evaluator, "q", untitled("a"), node="x")
    assert scored.scores == [-1.0]
    assert scored.events[0]["detail"] == "RuntimeError: out of memory"
    assert scored.readings == []


@pytest.mark.parametrize("text", ["total = price * count // 2  // round down", "Tel. 030"])
def test_strokes_in_an_untitled_text_are_no_title_to_who_reads_also_the_shortest(text: str) -> None:
    evaluator = FakeReadingEvaluator(lower=0.3, upper=0.6)
    judged = filter_strips(evaluator, "q", [unscored(text, UNTITLED)], Settings(), node="refine")
    assert evaluator.read_passages == [[Passage("", text)]]
    assert judged[0][0]["reason"] == "among the best"  # Of evidence, whatever the thresholds are.


@pytest.mark.parametrize(
    ("titles", "scored"),
    [("every_strip", "Title // This is a long strip"), ("none", "This is a long strip")],
)
def test_titles_take_part_in_scoring(titles: Any, scored: str) -> None:
    evaluator, strips = FakeEvaluator(), [unscored("This is a long strip", SOURCE)]
    filter_strips(evaluator, "q", strips, PaperSettings(titles=titles), node="refine")
    assert evaluator.calls == [("q", [scored])]


@pytest.mark.parametrize(
    ("lower", "upper", "settings", "kept"),
    [
        (-0.9, 0.5, Settings(), [True, False]),
        (30.0, 70.0, Settings(), [True, False]),
        (-4.0, 2.0, Settings(), [True, True]),
        (30.0, 70.0, Settings(strip_threshold=5), [True, True]),
    ],
)
def test_strips_are_cut_on_the_scale_of_the_evaluator(
    lower: float, upper: float, settings: Settings, kept: list[bool]
) -> None:
    texts = {"best": upper, "worse": 20.0 if lower > 0 else lower + 0.1}
    evaluator = FakeEvaluator(texts, lower=lower, upper=upper)
    strips = [unscored(f"This is the {name} of all texts", UNTITLED) for name in texts]
    judged = filter_strips(evaluator, "q", strips, settings, node="refine")[0]
    assert [strip["kept"] for strip in judged] == kept
