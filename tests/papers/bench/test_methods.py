"""Every method with a chat model behind HTTP: what it calls, what it knows, what it answers."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Unit, Variant
from crag.papers.bench.methods import METHODS, WithIntroductions, build_binary_llm
from crag.papers.bench.runner import Answerer, Row, asked_as, left_armed
from crag.parts import Hit, Parts
from crag.prompts import Prompts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever, FakeSearcher
from tests.papers.bench.runs import (
    HITS,
    ChatServer,
    answerer,
    chatting,
    examples,
    resources,
    variant,
)

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
    assert row["outcome"] == "answered", row["error"]
    assert "It is red" in row["answer"]
    assert row["action"] == action
    assert row["usage"]["llm_calls"] == calls == len(server.prompts)
    assert row["usage"]["input_tokens"] == 100 * calls


def test_what_the_rows_say_of_knowledge(tmp_path: Path, server: ChatServer) -> None:
    rag = row_of(tmp_path, server.url, "barn", "rag")
    assert rag["knowledge_words"] == 11
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


@pytest.mark.parametrize(
    "method", ["no_retrieval", "binary_llm", "self_rag", "self_crag", "crag_published"]
)
def test_what_a_method_needs_is_said(tmp_path: Path, method: str) -> None:
    unit = Unit(variant(method), examples(tmp_path)[0], {}, 0)
    assert answerer(None).missing(unit).startswith("it needs ")
    assert not answerer(None).missing(unit._replace(variant=variant("crag")))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_model_that_fails_makes_a_failed_row(
    tmp_path: Path, server: ChatServer, method: str
) -> None:
    server.failing = "barn"
    row = row_of(tmp_path, server.url, "barn", method)
    assert row["outcome"] == "failed"
    assert "out of order" in row["error"]
    assert row["answer"] == ""


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
    """As the official program does: options keep their semicolons."""
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
    unit = Unit(variant("crag_published", task="arc"), example, {}, 0)
    with left_armed():
        await Answerer(replace(parts, parts=given)).answer(unit)
    wanted = OFFICIAL.format(line, "What is  it?", "1: one \nA: half; 2: two")
    assert server.prompts == [wanted]


def test_a_row_of_another_generator_says_which_it_needs(tmp_path: Path) -> None:
    (barn,) = examples(tmp_path, ["barn"])
    tuned = Variant(name="tuned", method="rag", generator="llama2_ft")
    given = resources("http://127.0.0.1:1/v1")
    assert "the generator llama2_ft" in Answerer(given).missing(Unit(tuned, barn, {}, 0))
    served = replace(given, model="studies/llama2_ft (raw completion)")
    assert Answerer(served).missing(Unit(tuned, barn, {}, 0)) == ""


WIKI = [
    Hit("Barn", "https://en.wikipedia.org/wiki/Barn", "A barn is a building. " * 80),
    Hit("Shop", "https://example.org/shop", "Barns for sale."),
    *(Hit(f"W{n}", f"https://en.wikipedia.org/wiki/W{n}", f"Page {n}.") for n in range(9)),
]


def test_introductions_of_wikipedia_stand_beside_five_documents() -> None:
    documents = [Document(f"Text {n}.") for n in range(8)]
    searcher = FakeSearcher(WIKI)
    both = WithIntroductions(base=FakeRetriever(documents=documents), searcher=searcher)
    found = both.invoke("Q?")
    assert [one.page_content for one in found[:5]] == [f"Text {n}." for n in range(5)]
    assert [one.metadata["title"] for one in found[5:]] == ["Barn", "W0", "W1", "W2", "W3"]
    assert found[5].metadata["url"] == "https://en.wikipedia.org/wiki/Barn"
    assert 1100 < len(found[5].page_content) <= 1200
    assert searcher.queries == ["Q?"]


YES = Document("The barn is indeed red.", metadata={"title": "The barn"})
AGAIN = Document("It is indeed red.", metadata={"title": "The barn"})
NO = Document("Paint is dear.", metadata={"title": "Paint"})


@pytest.mark.parametrize(
    ("documents", "replies", "queries", "kept"),
    [
        (
            [YES, AGAIN],
            ["yes", "Yes.", "It is red [1]."],
            [],
            [YES.page_content, AGAIN.page_content],
        ),
        (
            [YES, NO],
            ["yes", "no", "barn, colour", "Red [2]."],
            ["barn, colour"],
            [YES.page_content],
        ),
    ],
)
def test_any_no_to_a_document_drops_it_and_searches_for_the_rewritten_question(
    documents: list[Document], replies: list[str], queries: list[str], kept: list[str]
) -> None:
    searcher, model = FakeSearcher(HITS), FakeChatModel(replies=replies)
    parts = Parts(
        retriever=FakeRetriever(documents=documents), evaluator=FakeEvaluator(), model=model,
        searcher=searcher,
    )  # fmt: skip
    state = build_binary_llm(parts).invoke({"question": "What colour is the barn?"})
    assert searcher.queries == queries
    assert state["usage"]["llm_calls"] == len(replies)
    assert [strip["text"] for strip in strips_of_kind(state, "document")] == kept
    found = [strip["text"] for strip in strips_of_kind(state, "web")]
    assert found == [hit.snippet for hit in HITS if queries]
    assert state["answer"] == replies[-1]
