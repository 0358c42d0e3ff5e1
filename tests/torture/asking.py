"""One question to a graph whose parts break, and what has to be true of its outcome."""

import asyncio
import json
import re
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from crag.answering.citations import marks_in
from crag.answering.outcome import NOT_FOUND
from crag.graph_registry import OFFERED
from crag.parts import Hit, Parts
from crag.settings import Settings
from tests.conftest import DOCUMENTS
from tests.graph.reflective import goes_on, says
from tests.torture.broken import (
    SURROGATES,
    BrokenEvaluator,
    BrokenModel,
    BrokenQuoter,
    BrokenReader,
    BrokenReadingEvaluator,
    BrokenReflection,
    BrokenRetriever,
    BrokenSearcher,
    Saboteur,
    broken_runnable,
)
from tests.torture.drawing import draw_settings

WAYS = ("invoke", "ainvoke", "stream", "astream")
MODES = ["values", "updates", "messages", "custom"]
HITS = [
    Hit("Programmers", "https://example.org/p", "Ada Lovelace is called the first programmer."),
    Hit("Ada", "https://en.wikipedia.org/wiki/Ada", "Ada Lovelace published her notes in 1843."),
    Hit("Given", "https://example.org/g", "Notes.", "Ada Lovelace wrote the notes of 1843."),
]
PAGES = {
    hit.url: ["Ada Lovelace wrote the first published program.", "It was 1843."] for hit in HITS
}
QUESTION = "Who wrote the first program?"
RECORDED: dict[str, frozenset[str]] = {
    "retriever": frozenset({"retrieval_failed", "nothing_retrieved"}),
    "evaluator": frozenset({"evaluator_failed"}),
    "searcher": frozenset({"search_failed", "search_unavailable", "search_empty", "hits_dropped"}),
    "reader": frozenset({"page_failed"}),
    "quoter": frozenset({"evaluator_failed", "abstained"}),
    "model": frozenset({
        "model_failed", "model_empty", "model_refused", "rewrite_failed", "contextualize_failed",
        "citation_removed", "uncited_answer", "abstained",
    }),
    "reflection": frozenset({"model_failed"}),
}  # fmt: skip
"""What a failure of each part is on record as."""
_QUOTED = re.compile(r"“.*?”", re.DOTALL)


class Case(NamedTuple):
    """One question, with all that is drawn for it."""

    number: int
    graph: str
    way: str
    settings: Settings
    parts: Parts
    saboteur: Saboteur
    asked: dict[str, Any]
    is_checkpointed: bool


def case(number: int, rate: float = 0.3) -> Case:
    """Draw one question by its number, which alone decides everything about it."""
    saboteur = Saboteur(number, rate)
    draw = saboteur.draw
    score, candidates = draw.choice((-0.9, 0.0, 0.9)), draw.choice((says, goes_on))
    judges: tuple[Any, ...] = (BrokenEvaluator, BrokenReadingEvaluator)
    models: tuple[Any, ...] = (BrokenModel, broken_runnable)
    model = draw.choice(models)(saboteur) if draw.random() < 0.8 else None
    parts = Parts(
        retriever=BrokenRetriever(saboteur, list(DOCUMENTS)),
        evaluator=draw.choice(judges)(saboteur, score),
        model=model,
        quoter=BrokenQuoter(saboteur) if model is None or draw.random() < 0.7 else None,
        searcher=BrokenSearcher(saboteur, HITS) if draw.random() < 0.9 else None,
        reader=BrokenReader(saboteur, PAGES) if draw.random() < 0.8 else None,
        reflection=BrokenReflection(saboteur, candidates),
    )
    graph = draw.choice(list(OFFERED))
    settings = draw_settings(draw)
    if settings.form == "poster" and graph != "self_crag":
        settings = settings.model_copy(update={"form": "short"})
    text = QUESTION if draw.random() < 0.9 else f"{QUESTION} {SURROGATES}"
    asked: dict[str, Any] = {"question": text}
    if draw.random() < 0.3:
        asked = {
            "messages": [HumanMessage("Who was Ada?"), AIMessage("A poet."), HumanMessage(text)]
        }
    way = draw.choice(WAYS)
    return Case(number, graph, way, settings, parts, saboteur, asked, draw.random() < 0.3)


class Outcome(NamedTuple):
    """What became of one question."""

    case: Case
    state: dict[str, Any]
    error: BaseException | None

    def problem(self) -> str:
        """Return what is wrong with it; empty if nothing is."""
        if self.error is not None:
            return f"raised {type(self.error).__name__}"
        state, kinds = self.state, {entry["kind"] for entry in self.state["events"]}
        if not isinstance(state["answer"], str) or not state["answer"]:
            return "there is no answer"
        said = state["answer"].startswith(NOT_FOUND) and "abstained" in kinds
        if (state["outcome"] == "not_found") and not said:
            return "abstained without saying so"
        for part, what in self.case.saboteur.told:
            if not kinds & RECORDED[part]:
                return f"no event tells that the {part} {what}"
        return self._contradiction() or _not_plain(state)

    def _contradiction(self) -> str:
        """Return which keys of the state contradict each other or the settings."""
        state, settings = self.state, self.case.settings
        if (state["outcome"] == "not_found") != (state["outcome"] == "not_found"):
            return f"abstained is {state['abstained']}, outcome {state['outcome']}"
        own_words = _QUOTED.sub("", state["answer"])
        marks = {number for mark in marks_in(own_words) for number in mark.numbers}
        if settings.cites and not marks <= {one["number"] for one in state["citations"]}:
            return f"the answer cites {marks}: {state['answer']}"
        calls = state["usage"].get("llm_calls", 0)
        if "reflection" not in OFFERED[self.case.graph].needs and calls > settings.max_llm_calls:
            return f"the model was asked {calls} times"
        return ""


def _not_plain(state: dict[str, Any]) -> str:
    """Return why a state cannot travel as JSON in UTF-8; empty if it can.

    What users wrote in their own messages is left as it is.
    """
    written = [one for one in state.get("messages", []) if not isinstance(one, HumanMessage)]
    state = {**state, "messages": written}

    def plain(value: Any) -> Any:
        if isinstance(value, BaseMessage) or hasattr(value, "page_content"):
            return value.model_dump()
        raise TypeError(f"{type(value).__name__} in the state")

    try:
        json.dumps(state, allow_nan=False, ensure_ascii=False, default=plain).encode()
    except (TypeError, ValueError) as error:
        return f"the state is not JSON: {error!r}"[:200]
    return ""


async def ask(one: Case) -> Outcome:
    """Ask one question in its own way."""
    keeper = InMemorySaver() if one.is_checkpointed else None
    graph = OFFERED[one.graph].build(one.parts, checkpointer=keeper)
    options: dict[str, Any] = {
        "context": one.settings,
        "config": {"configurable": {"thread_id": "1"}},
    }
    state: dict[str, Any] = {}
    error: BaseException | None = None

    def streamed() -> dict[str, Any]:
        last: dict[str, Any] = {}
        for mode, chunk in graph.stream(one.asked, stream_mode=MODES, **options):
            last = chunk if mode == "values" else last
        return last

    try:
        match one.way:
            case "invoke":
                state = await asyncio.to_thread(graph.invoke, one.asked, **options)
            case "stream":
                state = await asyncio.to_thread(streamed)
            case "ainvoke":
                state = await graph.ainvoke(one.asked, **options)
            case "astream":
                async for mode, chunk in graph.astream(one.asked, stream_mode=MODES, **options):
                    state = chunk if mode == "values" else state
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - what the test is about
        error = raised
    return Outcome(one, state, error)
