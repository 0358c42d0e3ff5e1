"""A question of several parts is answered part by part by `crag`, without a model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage

from crag.answering.outcome import NOT_FOUND, UNSURE, UNSURE_OF_PART
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag, build_decomposed
from crag.parts import Parts, Passage
from crag.reading import Reading
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeReadingEvaluator, FakeRetriever, FakeSearcher

PORT = "The server listens on port 8080."
TIME = "Requests end after thirty seconds."
ASKED = "Which port is used? When do requests end?"
FIRST, SECOND = "Which port is used?", "When do requests end?"
TEXTS = (PORT, TIME)


class Reads(FakeReadingEvaluator):
    """Score by the question: each part finds its text, both at once find `whole` in all texts.

    A text is evidence where it scores above 0.5.
    """

    def __init__(self, first: float, second: float, whole: float = -0.9) -> None:
        def score(question: str, text: str) -> float:
            if question == ASKED:
                return whole
            return max(
                first if FIRST in question and PORT in text else -0.9,
                second if SECOND in question and TIME in text else -0.9,
            )

        super().__init__(score)
        self._of = score

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        readings = []
        self.read_passages.append(list(passages))
        for passage in passages:
            self._evidence = tuple(TEXTS) if self._of(question, passage.text) > 0.5 else ()
            (score,) = self.score(question, [passage.text])
            readings.append(self._reading(score, passage))
        return readings


class ReadsTogether(Reads):
    """An evaluator that reads for several questions in one call."""

    def __init__(self, *scores: float) -> None:
        super().__init__(*scores)
        self.pairs: list[list[tuple[str, Passage]]] = []

    def read_pairs(self, pairs: list[tuple[str, Passage]]) -> list[Reading]:
        self.pairs.append(pairs)
        return [self.read(question, [passage])[0] for question, passage in pairs]


def parts_of(evaluator: Any, **more: Any) -> Parts:
    documents = [
        Document(f"{text} More of it stands elsewhere.", metadata={"source": f"{number}.md"})
        for number, text in enumerate(TEXTS)
    ]
    more = {"quoter": ExtractiveAnswerer(evaluator), **more}
    return Parts(retriever=FakeRetriever(documents=documents), evaluator=evaluator, **more)


def run(
    evaluator: Any, question: str = ASKED, settings: Settings | None = None, **more: Any
) -> Any:
    return build_crag(parts_of(evaluator, **more)).invoke({"question": question}, context=settings)


def quoted(state: Any) -> list[str]:
    return [
        cited["text"][quote["start"] : quote["end"]]
        for cited in state["citations"]
        for quote in cited["quotes"]
    ]


def test_each_part_leads_with_its_own_quotation() -> None:
    state = run(Reads(0.9, 0.9))
    first, second = state["answer"].index(PORT), state["answer"].index(TIME)
    assert first < second
    assert (state["action"], state["certainty"], state["abstained"]) == (
        "correct",
        "answered",
        False,
    )
    assert [cited["source"]["url"] for cited in state["citations"]] == ["0.md", "1.md"]
    assert [part["question"] for part in state["sub_questions"]] == [FIRST, SECOND]
    for part, text in zip(state["sub_questions"], TEXTS, strict=True):
        assert (part["action"], part["abstained"]) == ("correct", False)
        assert text in part["answer"]
        assert [text in cited["text"] for cited in part["citations"]] == [True]
        assert "readings" not in part


def test_all_parts_are_read_in_one_call_with_the_whole() -> None:
    evaluator = ReadsTogether(0.9, 0.9)
    state = run(evaluator)
    assert [[question for question, _ in pairs] for pairs in evaluator.pairs] == [
        [ASKED, ASKED, FIRST, FIRST, SECOND, SECOND]
    ]
    assert state["usage"]["evaluator_calls"] == 1
    assert run(Reads(0.9, 0.9))["usage"]["evaluator_calls"] == 3
    assert run(Reads(0.9, 0.9))["answer"] == state["answer"]


def test_a_part_without_an_answer_is_named() -> None:
    state = run(Reads(0.9, 0.0))
    assert (state["action"], state["certainty"]) == ("ambiguous", "answered")
    assert f"{SECOND} {UNSURE_OF_PART}\n\n“{TIME}" in state["answer"]
    assert [part["abstained"] for part in state["sub_questions"]] == [False, True]
    state = run(Reads(0.9, -0.9))
    assert state["answer"].endswith(f"{SECOND} {NOT_FOUND}")
    assert [cited["source"]["url"] for cited in state["citations"]] == ["0.md"]


def test_where_no_part_is_sure_each_shows_its_closest_passage() -> None:
    state = run(Reads(0.0, 0.0))
    assert (state["action"], state["certainty"], state["abstained"]) == (
        "ambiguous",
        "unsure",
        True,
    )
    assert state["answer"].startswith(UNSURE)
    assert all(text in state["answer"] for text in TEXTS)


def test_what_serves_no_part_is_incorrect() -> None:
    state = run(Reads(-0.9, -0.9))
    assert (state["action"], state["certainty"]) == ("incorrect", "nothing_found")


def test_the_whole_answers_where_it_loses_nothing() -> None:
    state = run(Reads(-0.9, -0.9, whole=0.9))
    assert (state["action"], state["certainty"]) == ("correct", "answered")
    assert PORT in state["answer"]
    assert (FIRST in state["answer"], state["sub_questions"]) == (False, [])


@pytest.mark.parametrize(
    "settings",
    [
        Settings(sub_questions=1),
        Settings(strip_scores="alone"),
        Settings(refine=False),
        Settings(task="popqa", upper=0.5, lower=-0.5),
    ],
)
def test_it_is_not_split_where_parts_cannot_be_read_or_shall_not_be(settings: Settings) -> None:
    parts = parts_of(Reads(0.9, 0.9))
    state = build_crag(parts).invoke({"question": ASKED}, context=settings)
    assert (state["sub_questions"], parts.retriever.questions) == ([], [ASKED])  # type: ignore[attr-defined]


def test_a_question_of_one_part_is_found_and_read_once() -> None:
    evaluator = ReadsTogether(0.9, 0.9)
    parts = parts_of(evaluator)
    state = build_crag(parts).invoke({"question": FIRST})
    assert (state["sub_questions"], parts.retriever.questions) == ([], [FIRST])  # type: ignore[attr-defined]
    assert (evaluator.pairs, len(evaluator.read_passages)) == ([], 1)
    assert (state["certainty"], PORT in state["answer"]) == ("answered", True)


def test_a_model_answers_the_question_whole() -> None:
    state = run(Reads(0.9, 0.9, whole=0.9), model=FakeChatModel())
    assert (state["sub_questions"], state["answer"]) == ([], "A fact [1].")


def test_a_follow_up_is_not_split_from_the_question_before_it() -> None:
    graph = build_crag(parts_of(Reads(0.9, 0.9)))
    before = [HumanMessage(FIRST), AIMessage("8080.")]
    state = graph.invoke({"messages": [*before, HumanMessage("And when do requests end?")]})
    assert state["question"] == f"{FIRST} And when do requests end?"
    assert state["sub_questions"] == []
    state = graph.invoke({"messages": [*before, HumanMessage(ASKED)]})
    assert [part["question"] for part in state["sub_questions"]] == [FIRST, SECOND]


def test_the_next_question_of_a_thread_starts_without_parts() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    graph = build_crag(parts_of(Reads(0.9, 0.9)), checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    assert len(graph.invoke({"question": ASKED}, thread)["sub_questions"]) == 2
    assert graph.invoke({"question": FIRST}, thread)["sub_questions"] == []


def test_an_evaluator_that_fails_leaves_the_question_whole() -> None:
    evaluator = Reads(0.9, 0.9)
    evaluator._error = ValueError("broken")  # noqa: SLF001 - a fake's own
    state = run(evaluator)
    assert (state["sub_questions"], state["action"]) == ([], "incorrect")
    assert "evaluator_failed" in [one["kind"] for one in state["events"]]


class BreaksOff(FakeRetriever):
    """Answers the first question only."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        if len(self.questions) > 1:
            raise TimeoutError(f"no answer to {query}")
        return found


def test_a_retriever_that_fails_for_a_part_is_told() -> None:
    parts = parts_of(Reads(0.9, 0.9))
    broken = BreaksOff(documents=[Document(PORT, metadata={"source": "0.md"})])
    state = build_crag(replace(parts, retriever=broken)).invoke({"question": ASKED})
    failed = [one["detail"] for one in state["events"] if one["kind"] == "retrieval_failed"]
    assert failed == [
        f"part 1: TimeoutError: no answer to {FIRST}",
        f"part 2: TimeoutError: no answer to {SECOND}",
    ]


@pytest.mark.parametrize(
    ("retriever", "kind"),
    [
        (FakeRetriever(), "nothing_retrieved"),
        (FakeRetriever(error=ConnectionError("refused")), "retrieval_failed"),
    ],
)
def test_what_fails_for_the_whole_is_told_once(retriever: FakeRetriever, kind: str) -> None:
    parts = replace(parts_of(Reads(0.9, 0.9)), retriever=retriever)
    state = build_crag(parts).invoke({"question": ASKED})
    assert [one["kind"] for one in state["events"] if one["node"] == "retrieve"] == [kind]


def test_the_web_is_read_for_the_part_that_the_documents_lack() -> None:
    from crag.parts import Hit

    hit = Hit("Limits", "https://example.org/limits", f"{TIME} So says the web.")
    evaluator = Reads(0.9, 0.9)
    parts = Parts(
        retriever=FakeRetriever(documents=[Document(PORT, metadata={"source": "0.md"})]),
        evaluator=evaluator,
        quoter=ExtractiveAnswerer(evaluator),
        searcher=FakeSearcher([hit]),
    )
    state = build_crag(parts).invoke({"question": ASKED})
    assert state["action"] == "ambiguous"
    assert [cited["source"]["url"] for cited in state["citations"]] == ["0.md", hit.url]


def test_parts_within_a_planned_part_do_not_replace_the_plan() -> None:
    state = build_decomposed(parts_of(Reads(0.9, 0.9))).invoke({"question": FIRST})
    assert [part["question"] for part in state["sub_questions"]] == [FIRST]
