"""Pages and paragraphs: what reading may cost, and what is selected."""

from types import SimpleNamespace
from typing import Any

import pytest

from crag.correction.provenance import unscored
from crag.nodes.read_pages import read_pages
from crag.nodes.select import select
from crag.papers.settings import PaperSettings
from crag.parts import Page, ReadingLimits
from crag.settings import Settings
from crag.state import Source, State, Strip, WebPage
from crag.testing import FakeEvaluator, FakeReader

DEFAULT = Settings()
ADA, ENGINE, SHOP = (f"https://example.org/{name}" for name in ("ada", "engine", "shop"))
PAGES = {ADA: ["Ada wrote a program.", "She was born in 1815."], ENGINE: ["It was never built."]}


def hit(url: str, text: str = "", snippet: str = "A snippet.", title: str = "Hit") -> WebPage:
    return WebPage(
        title=title, url=url, snippet=snippet, text=text, status="found", detail="", paragraphs=0,
    )  # fmt: skip


def state(*hits: WebPage, milliseconds: int = 0) -> State:
    return State(question="q", pages=list(hits), usage={"web_milliseconds": milliseconds})


def read(reader: Any, given: State, settings: Settings = DEFAULT) -> Any:
    return read_pages(given, settings, reader)


def test_paragraphs_in_the_order_of_the_hits() -> None:
    reader = FakeReader(PAGES)
    update = read(reader, state(hit(ENGINE), hit(ADA)))
    assert [strip["text"] for strip in update["strips"]] == [*PAGES[ENGINE], *PAGES[ADA]]
    assert update["strips"][2]["source"] == {
        "id": "hit-2", "title": "A page", "url": ADA, "position": "paragraph 2",
    }  # fmt: skip
    assert all(strip["score"] is None and not strip["kept"] for strip in update["strips"])
    told = [(page["status"], page["paragraphs"]) for page in update["pages"]]
    assert told == [("read", 1), ("read", 2)]
    assert update["usage"]["pages"] == 2
    assert reader.calls[0][0] == [ENGINE, ADA]
    assert update["events"] == []


@pytest.mark.parametrize(
    ("reader", "detail"),
    [
        (FakeReader(PAGES), "there is no such page"),
        (FakeReader(error=OSError("cut")), "cut"),
        (FakeReader(error=ValueError("odd")), "odd"),
        (SimpleNamespace(read=lambda *_: [Page(SHOP, "", "no paragraphs")]), "valid tuple"),
    ],
)
def test_a_page_that_fails_is_replaced_by_its_snippet(reader: Any, detail: str) -> None:
    update = read(reader, state(hit(SHOP)))
    assert [strip["text"] for strip in update["strips"]] == ["A snippet."]
    (entry,) = update["events"]
    assert (entry["kind"], entry["fallback"]) == ("page_failed", "its snippet is used")
    assert entry["detail"].startswith(f"{SHOP}: ")
    assert detail in entry["detail"]
    assert update["pages"][0]["status"] == "failed"


@pytest.mark.parametrize(
    "instead",
    [
        ["Verifying you are human. This may take a few seconds."],
        ["Making sure you're not a bot!", "Protected by Anubis."],
        ["JavaScript is not available."],
        ["Log in to continue", "Forgot your password?"],
        ["Page not found", "The page you are looking for was moved."],
    ],
)
def test_what_a_server_sends_in_the_place_of_a_page_gives_way_to_the_snippet(
    instead: list[str],
) -> None:
    snippet = "Ada wrote the first program in 1843."
    given = state(hit(ADA, snippet=snippet)) | {"question": "When did Ada write the program?"}
    update = read(FakeReader({ADA: instead}), State(**given))
    assert [strip["text"] for strip in update["strips"]] == [snippet]
    assert [event["kind"] for event in update["events"]] == ["page_failed"]


def test_text_that_came_with_the_hit_saves_the_visit() -> None:
    reader = FakeReader(PAGES)
    given = hit(SHOP, text="A first paragraph.\n\nAnd a second one.")
    update = read(reader, state(given, hit(ENGINE)), Settings(max_pages=1))
    assert reader.calls[0][0] == [ENGINE]
    texts = [strip["text"] for strip in update["strips"][:2]]
    assert texts == ["A first paragraph.", "And a second one."]
    assert [page["status"] for page in update["pages"]] == ["given", "read"]
    assert update["usage"]["pages"] == 1
    assert all("text" not in page for page in update["pages"])  # It is in the strips now.


def test_a_budget_of_pages() -> None:
    reader = FakeReader(PAGES)
    update = read(reader, state(hit(ADA), hit(ENGINE), hit(SHOP)), Settings(max_pages=1))
    assert reader.calls[0][0] == [ADA]
    assert [strip["text"] for strip in update["strips"]] == [*PAGES[ADA], *["A snippet."] * 2]


def test_limits_reach_the_reader_less_what_the_search_took() -> None:
    reader = FakeReader(PAGES)
    settings = Settings(max_web_seconds=9, obey_robots=False)
    read(reader, state(hit(ADA), milliseconds=4000), settings)
    assert reader.calls[0][1] == ReadingLimits(5.0, 8.0, 3_000_000, robots=False)


@pytest.mark.parametrize("titles", ["passage", "none"])
def test_the_official_form_of_a_paragraph(titles: Any) -> None:
    update = read(FakeReader(PAGES), state(hit(ENGINE)), PaperSettings(titles=titles))
    assert update["strips"][0]["text"] == "A page: It was never built."


SOURCE = Source(id="hit-1", title="Ada", url="https://example.org/ada", position="paragraph 1")
TEXTS = ["Ada Lovelace wrote the first program.", "Buy programs here for less.", "Too short"]


def strips(*texts: str) -> list[Strip]:
    return [unscored(text, SOURCE, "web") for text in texts]


def test_all_paragraphs_in_one_call_against_the_question() -> None:
    evaluator = FakeEvaluator({"Lovelace wrote": 0.8})
    state = State(question="Who wrote the first program?", query="program", strips=strips(*TEXTS))
    update = select(state, Settings(), evaluator)
    assert [strip["kept"] for strip in update["strips"]] == [True, False, False]
    ((question, texts),) = evaluator.calls
    assert question == state["question"]
    assert texts == [f"Ada // {text}" for text in TEXTS[:2]]
    assert update["usage"] == {"evaluator_calls": 1, "evaluated_texts": 2}
    assert update["strips"][0]["source"] == SOURCE


def test_switched_off() -> None:
    evaluator = FakeEvaluator()
    update = select(
        State(question="q", strips=strips(*TEXTS)), PaperSettings(select=False), evaluator
    )
    assert all(strip["kept"] for strip in update["strips"])
    assert evaluator.calls == []


def test_of_very_many_paragraphs_those_are_judged_that_fit_by_words() -> None:
    many = [f"Paragraph {number} tells of the weather in May." for number in range(30)]
    many[13] = "The first program was written by Ada Lovelace."
    evaluator = FakeEvaluator({"Lovelace": 0.8})
    state = State(question="Who wrote the first program?", strips=strips(*many))
    update = select(state, Settings(), evaluator)
    assert [strip["text"] for strip in update["strips"] if strip["kept"]] == [many[13]]
    assert len(evaluator.calls[0][1]) == len(update["strips"]) == 20


def test_nothing_to_select_from() -> None:
    nothing = select(State(question="q", strips=[]), Settings(), FakeEvaluator())
    assert nothing == {"strips": [], "events": []}
    hit = WebPage(
        title="", url="https://example.org", snippet="", status="found", detail="", paragraphs=0,

    )  # fmt: skip
    update = select(State(question="q", pages=[hit]), Settings(), FakeEvaluator())
    assert [entry["kind"] for entry in update["events"]] == ["search_empty"]
