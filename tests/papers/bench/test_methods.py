"""Every method with a chat model behind HTTP: what it calls, what it knows, what it answers."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.errors import CragError, EvaluatorError, SearchError
from crag.evaluators import load_evaluator
from crag.papers.bench.answering import Answerer, asked_as
from crag.papers.bench.current_example import ExampleRetriever
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Variant
from crag.papers.bench.introductions import WithIntroductions
from crag.papers.bench.methods import METHODS
from crag.papers.bench.rows import Row
from crag.papers.bench.units import Unit
from crag.papers.bench.verdicts import VerdictEvaluator
from crag.parts import Hit
from crag.prompts import Prompts
from crag.testing import FakeEvaluator, FakeRetriever, FakeSearcher
from tests.papers.bench.chat_server import ChatServer, chatting
from tests.papers.bench.runs import answerer, examples, resources, variant

PUBLISHED = {"internal": "It is red inside.", "external": "It is red outside."}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


def row_of(
    folder: Path, url: str | None, name: str, method: str, *, parts: Any = None, **settings: Any
) -> Row:
    (found,) = (one for one in examples(folder) if one.id == name)
    example = found._replace(knowledge=PUBLISHED)
    unit = Unit(variant(method, **settings), example, {}, 0)
    return asyncio.run(answerer(url, **parts or {}).answer(unit))


@pytest.mark.parametrize(
    ("method", "name", "settings", "calls", "action"),
    [
        ("no_retrieval", "barn", {}, 1, ""),
        ("rag", "barn", {}, 1, ""),
        ("rag_web", "barn", {}, 2, ""),
        ("crag", "barn", {}, 1, "correct"),
        ("crag", "gate", {}, 2, "ambiguous"),
        ("crag", "boat", {}, 2, "incorrect"),
        ("crag_published", "barn", {}, 1, "correct"),
        ("crag_published", "gate", {}, 1, "ambiguous"),
        ("crag_published", "boat", {}, 1, "incorrect"),
        ("self_rag", "barn", {}, 3, ""),
        ("self_rag_web", "barn", {}, 3, ""),
        ("self_crag", "barn", {"self_crag_knowledge": "routed"}, 2, "correct"),
        ("self_crag", "barn", {"self_crag_knowledge": "assembled"}, 5, "correct"),
        ("binary_llm", "barn", {}, 4, ""),
    ],
)
def test_each_method_answers_with_its_calls(
    tmp_path: Path, server: ChatServer, method: str, name: str, settings: dict[str, Any],
    calls: int, action: str,
) -> None:  # fmt: skip
    row = row_of(tmp_path, server.url, name, method, **settings)
    assert row["status"] == "answered", row["error"]
    assert "It is red" in row["answer"]
    assert row["action"] == action
    assert row["usage"]["llm_calls"] == calls == len(server.prompts)
    assert row["usage"]["input_tokens"] == 100 * calls


def test_what_the_rows_say_of_knowledge(tmp_path: Path, server: ChatServer) -> None:
    rag = row_of(tmp_path, server.url, "barn", "rag")
    assert (rag["documents_words"], rag["knowledge_words"]) == (11, 11)
    assert rag["retrieved_holds_answer"]
    assert rag["knowledge_holds_answer"]
    web = row_of(tmp_path, server.url, "barn", "rag_web")
    assert web["knowledge"].endswith("The things of the harbour are red.")
    assert web["knowledge_words"] == 11 + 7
    wrong = row_of(tmp_path, server.url, "kite", "crag")
    assert wrong["knowledge_holds_answer"]
    assert "green" not in wrong["answer"]
    alone = row_of(tmp_path, server.url, "barn", "no_retrieval")
    assert (alone["knowledge"], alone["retrieved_holds_answer"]) == ("", None)


@pytest.mark.parametrize(
    ("name", "knowledge"),
    [
        ("barn", "It is red inside."),
        ("gate", "It is red inside.\nIt is red outside."),
        ("boat", "It is red outside."),
    ],
)
def test_published_knowledge_is_that_of_the_action(
    tmp_path: Path, server: ChatServer, name: str, knowledge: str
) -> None:
    assert row_of(tmp_path, server.url, name, "crag_published")["knowledge"] == knowledge


def test_calls_of_an_evaluator_that_asks_the_model_are_counted_too(
    tmp_path: Path, server: ChatServer
) -> None:
    made = resources(server.url)
    model = made.parts.model
    assert model is not None
    parts = replace(made.parts, evaluator=VerdictEvaluator(model))
    unit = Unit(variant("crag"), examples(tmp_path)[0], {}, 0)
    row = asyncio.run(Answerer(replace(made, parts=parts)).answer(unit))
    assert row["usage"]["llm_calls"] == len(server.prompts) > 3
    assert row["usage"]["input_tokens"] == 100 * len(server.prompts)
    assert row["usage"]["evaluator_calls"] == 2


def test_scores_are_those_of_the_documents_in_order(tmp_path: Path, server: ChatServer) -> None:
    evaluator = FakeEvaluator({"indeed": 0.9, "dear": -0.7})
    row = row_of(tmp_path, server.url, "barn", "crag", parts={"evaluator": evaluator})
    assert row["scores"] == [0.9, -0.7]


def test_a_score_that_is_no_number_is_the_lowest_in_a_row(
    tmp_path: Path, server: ChatServer
) -> None:
    evaluator = FakeEvaluator({"indeed": 0.9, "dear": float("nan")})
    row = row_of(tmp_path, server.url, "barn", "crag", parts={"evaluator": evaluator})
    assert row["scores"][0] == 0.9
    assert row["scores"][1] == -1.0


def test_without_a_model_there_are_quotations(tmp_path: Path) -> None:
    row = row_of(tmp_path, None, "barn", "crag")
    assert row["answer"] == "“The barn is indeed red.” [1]"
    assert row["usage"].get("llm_calls", 0) == 0


@pytest.mark.parametrize(
    "method", ["no_retrieval", "binary_llm", "self_rag", "self_crag", "crag_published"]
)
def test_what_a_method_needs_is_said(tmp_path: Path, method: str) -> None:
    unit = Unit(variant(method), examples(tmp_path)[0], {}, 0)
    assert answerer(None).missing(unit).startswith("it needs ")
    assert not answerer(None).missing(unit._replace(variant=variant("crag")))


def test_an_evaluator_that_asks_a_model_needs_one(tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    asking = Variant(name="asking", method="crag", evaluator="chat-direct")
    assert answerer(None).missing(Unit(asking, barn, {}, 0)).startswith("it needs a chat model")


def test_an_evaluator_that_is_not_there_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    given = replace(resources(None), other=load_evaluator)
    lost = Variant(name="lost", method="crag", evaluator=str(tmp_path / "lost"))
    with pytest.raises(EvaluatorError, match="there is no such folder"):
        Answerer(given).missing(Unit(lost, barn, {}, 0))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_model_that_fails_makes_a_failed_row(
    tmp_path: Path, server: ChatServer, method: str
) -> None:
    server.failing = "barn"
    row = row_of(tmp_path, server.url, "barn", method)
    assert row["status"] == "failed"
    assert "out of order" in row["error"]
    assert row["answer"] == ""


def test_a_search_that_fails_is_an_event_and_no_failure(tmp_path: Path, server: ChatServer) -> None:
    broken = FakeSearcher(error=SearchError("fake", "server", "down"))
    row = row_of(tmp_path, server.url, "gate", "crag", parts={"searcher": broken})
    assert row["status"] == "answered"
    assert "search_failed" in [event["kind"] for event in row["events"]]


def test_a_whole_run_that_breaks_is_a_failed_row(tmp_path: Path, server: ChatServer) -> None:
    row = row_of(tmp_path, server.url, "barn", "rag", max_question_characters=3)
    assert row["status"] == "failed"
    assert row["error"].startswith("QuestionError")


def test_arc_is_asked_with_options_under_their_published_labels() -> None:
    options = (("1", "in a pan"), ("2", "in a pot"))
    example = Example("a", "arc", "Where?", (("1",),), choices=options)
    assert asked_as(example) == "Where?\n1: in a pan\n2: in a pot"


PUBLISHED_LINES = [
    "#Barn:  It is red.[1] ; Barn: It\u00a0stands [2] still. ",
    "Knowledge1: It is [Relevant].  [sep] Knowledge2: Barn: red [3]",
    "",
]
OFFICIAL = "Documents: {}\nQuestion: {}\nChoices:{}"


@pytest.mark.parametrize("line", PUBLISHED_LINES)
async def test_published_knowledge_enters_the_prompt_to_the_letter(
    server: ChatServer, line: str, tmp_path: Path
) -> None:
    """As the official program does: options keep their semicolons, and nothing is disarmed."""
    wording = OFFICIAL.format("$knowledge", "$question", "$published_options")
    (tmp_path / "answer_arc.md").write_text(f"[user]\n{wording}\n", "utf-8")
    choices = (("1", "one A: half"), ("2", "two"))
    example = Example(
        "a",
        "arc",
        "What is  it?",
        (("1",),),
        (Document("It."),),
        choices,
        knowledge={"internal": line},
    )
    parts = resources(server.url, evaluator=FakeEvaluator(otherwise=1.0))
    given = replace(parts.parts, prompts=Prompts.from_folder(tmp_path))
    armed = Answerer(replace(parts, parts=given, disarm=False))
    await armed.answer(Unit(variant("crag_published", task="arc"), example, {}, 0))
    wanted = OFFICIAL.format(line, "What is  it?", "1: one \nA: half; 2: two")
    assert server.prompts == [wanted]


def test_a_row_of_another_generator_says_which_it_needs(tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    tuned = Variant(name="tuned", method="rag", generator="llama2_ft")
    given = resources("http://127.0.0.1:1/v1")
    assert "the generator llama2_ft" in Answerer(given).missing(Unit(tuned, barn, {}, 0))
    served = replace(given, model="studies/llama2_ft (raw completion)")
    assert Answerer(served).missing(Unit(tuned, barn, {}, 0)) == ""


def test_what_is_not_disarmed_is_another_row(server: ChatServer, tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    parts, unit = resources(server.url), Unit(variant("rag"), barn, {}, 0)
    assert unit.key(parts.named(unit)) != unit.key(replace(parts, disarm=False).named(unit))


WIKI = [
    Hit("Barn", "https://en.wikipedia.org/wiki/Barn", "A barn is a building. " * 80),
    Hit("Shop", "https://example.org/shop", "Barns for sale."),
    *(Hit(f"W{n}", f"https://en.wikipedia.org/wiki/W{n}", f"Page {n}.") for n in range(9)),
]


async def test_introductions_of_wikipedia_stand_beside_five_documents() -> None:
    documents = [Document(f"Text {n}.") for n in range(8)]
    searcher = FakeSearcher(WIKI)
    both = WithIntroductions(base=FakeRetriever(documents=documents), searcher=searcher)
    found = both.invoke("Q?")
    assert await both.ainvoke("Q?") == found
    assert [one.page_content for one in found[:5]] == [f"Text {n}." for n in range(5)]
    assert [one.metadata["title"] for one in found[5:]] == ["Barn", "W0", "W1", "W2", "W3"]
    assert found[5].metadata["url"] == "https://en.wikipedia.org/wiki/Barn"
    assert 1100 < len(found[5].page_content) <= 1200
    assert searcher.queries == ["Q?"] * 2


def test_a_method_that_must_search_says_so(tmp_path: Path) -> None:
    example = examples(tmp_path)[0]
    parts = resources("http://127.0.0.1:1/v1", searcher=None).parts
    assert "CRAG_SEARCH=wikipedia" in METHODS["self_rag_web"].missing(parts, example)
    with pytest.raises(CragError, match="searches Wikipedia"):
        METHODS["self_rag_web"].build(parts)


def test_documents_of_an_example_are_there_only_while_it_is_answered() -> None:
    with pytest.raises(LookupError, match="no example of a benchmark is being answered here"):
        ExampleRetriever().invoke("Who?")


def test_another_evaluator_needs_what_loads_it(tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    other = Variant(name="other", method="crag", evaluator="chat")
    with pytest.raises(CragError, match="the evaluator 'chat' cannot be loaded here"):
        asyncio.run(answerer(None).answer(Unit(other, barn, {}, 0)))
