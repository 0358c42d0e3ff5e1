"""Answer the next part of a question with the graph of Corrective RAG."""

from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from typing_extensions import TypedDict

from crag.answering.joining import merged
from crag.correction.decomposition import with_answers
from crag.events import Event
from crag.runtime.waiting import call
from crag.settings import Settings
from crag.state import State, Strip, SubQuestion, Usage

_LONGEST = 1_000_000
"""Characters of a part with the answers to earlier ones, which the graph shall not refuse."""


class PartUpdate(TypedDict):
    """Written by `answer_part`; documents and strips are those of all parts so far."""

    sub_questions: list[SubQuestion]
    documents: list[Document]
    scores: list[float]
    internal: list[Strip]
    external: list[Strip]
    events: list[Event]
    usage: Usage


@dataclass(frozen=True)
class AnswerPart:
    """Run the graph on the first part that was not asked yet, with a share of the model calls.

    One call is left for the answer to the whole; the others are shared evenly among the parts.
    A part may search the web as long as earlier ones left a search. The other budgets of the web
    hold for each part.
    """

    graph: Runnable[Any, Any]

    async def run(self, state: State, settings: Settings) -> PartUpdate:
        """Write the part with its answer, and what it rests on."""
        asked, limited = _next(state, settings)
        inputs = {"question": asked}
        found = await call(self.graph.invoke, self.graph.ainvoke, inputs, context=limited)
        return _update(state, asked, found)


def _next(state: State, settings: Settings) -> tuple[str, Settings]:
    parts = state["sub_questions"]
    before = [part for part in parts if part["asked"]]
    answers = [None if part["abstained"] else part["answer"] for part in before]
    asked = [part["asked"] for part in before]
    calls = settings.calls_left(state) - 1
    searches = settings.max_searches - state.get("usage", {}).get("searches", 0)
    changed = {
        "max_llm_calls": max(0, calls // (len(parts) - len(before))),
        "max_searches": max(0, searches),
        "max_question_characters": _LONGEST,
        "confirm_web": settings.confirm_web or state.get("confirms", False),
    }
    question = with_answers(parts[len(before)]["question"], asked, answers)
    return question, settings.model_copy(update=changed)


def _update(state: State, asked: str, found: State) -> PartUpdate:
    parts, posed = state["sub_questions"], found.get("posed")
    asked = posed["question"] if posed else asked  # As it was read, without typing errors.
    at = next(place for place, part in enumerate(parts) if not part["asked"])
    answered = SubQuestion(
        question=parts[at]["question"], asked=asked, action=found.get("action"),
        thresholds=found.get("thresholds"), scores=found["scores"], query=found["query"],
        answer=found["answer"], abstained=found["abstained"], citations=found["citations"],
    )  # fmt: skip
    documents, scores = _documents(state, found)
    events = [
        Event(**{**one, "detail": f"part {at + 1}: {one['detail']}"}) for one in found["events"]
    ]
    return PartUpdate(
        sub_questions=[*parts[:at], answered, *parts[at + 1 :]],
        documents=documents,
        scores=scores,
        internal=merged(state.get("internal", []), found["internal"]),
        external=merged(state.get("external", []), found["external"]),
        events=events,
        usage=found["usage"],
    )


def _documents(state: State, found: State) -> tuple[list[Document], list[float]]:
    """Return the documents of all parts, each once, with the best of its scores."""
    best: dict[tuple[str, str], tuple[Document, float]] = {}
    for one in (state, found):
        pairs = zip(one.get("documents", []), one.get("scores", []), strict=False)
        for document, score in pairs:
            key = (document.page_content, str(document.metadata.get("source", "")))
            if key not in best or best[key][1] < score:
                best[key] = (document, score)
    return [document for document, _ in best.values()], [score for _, score in best.values()]
