"""What parts return has a size, so that the state of a run has one."""

from typing import Any

import pytest
from langchain_core.documents import Document

from crag.errors import ReplyError
from crag.parts import Hit, Page, Quotation
from crag.runtime.replies import (
    documents_of,
    hits_of,
    pages_of,
    quotations_of,
    reply_of,
)

HUGE = "x" * 1_000_001
WHOLE = "x" * 50_000_001
URL = "http://a/"


@pytest.mark.parametrize(
    "reply",
    [
        lambda: documents_of([Document(WHOLE)], 10),
        lambda: documents_of([Document("x", metadata={"whole": WHOLE})], 10),
        lambda: documents_of([Document("x", metadata={"all": [HUGE] * 50})], 10),
        lambda: pages_of([Page(URL, "A", (HUGE,) * 50)], [URL]),
    ],
    ids=["text", "metadata", "members", "paragraphs"],
)
def test_more_than_a_run_can_hold_is_refused(reply: Any) -> None:
    with pytest.raises(ReplyError, match="a run holds at most 50,000,000"):
        reply()


def test_a_reply_of_a_model_is_refused() -> None:
    with pytest.raises(ReplyError, match="replied with 1,000,001 characters"):
        reply_of(HUGE)


def test_what_is_too_much_of_hits_pages_and_quotations_is_left_out() -> None:
    hit = Hit(HUGE, URL, HUGE, HUGE)
    hits = hits_of(iter([hit] * 9), 3)
    assert [[len(text) for text in hit] for hit in hits] == [[10**6, len(URL), 10**6, 10**6]] * 3
    (page,) = pages_of([Page(URL, HUGE, ("a",) * 20_000)], [URL])
    assert (len(page.title), len(page.paragraphs)) == (10**6, 12_000)
    strip: Any = {"text": "a fact", "source": {}, "score": 1.0, "kept": True, "reason": ""}
    assert len(quotations_of([Quotation("a fact", 0, 1.0)] * 2000, [strip])) == 1000


def strip(text: str) -> Any:
    return {"text": text, "source": {}, "score": 1.0, "kept": True, "reason": ""}


@pytest.mark.parametrize(
    ("quoted", "problem"),
    [
        (Quotation(" ", 0, 1.0), "returned a quotation without text"),
        (Quotation("a fact", 1, 1.0), "quoted strip 1 of 1; the first one is 0"),
        (Quotation("a fact", -1, 1.0), "quoted strip -1 of 1"),
        (Quotation("a fact " * 40, 0, 1.0), "quoted 280 characters of a strip of 6"),
        (Quotation("fact", 0, 1.0, (2, 7)), r"quoted the characters \(2, 7\) of a strip of 6"),
        (Quotation("fact", 0, 1.0, (2, 6), (5, 4)), r"quoted the characters \(5, 4\)"),
    ],
)
def test_a_quotation_that_the_strips_do_not_hold_is_refused(
    quoted: Quotation, problem: str
) -> None:
    with pytest.raises(ReplyError, match=f"quoter {problem}"):
        quotations_of([quoted], [strip("a fact")])


def test_a_quotation_may_repeat_what_stands_before_its_strip() -> None:
    before = "Of the things to know, " * 40
    quoted = Quotation(f"{before}a fact", 0, 1.0)
    assert quotations_of([quoted], [{**strip("a fact"), "before": before}]) == [quoted]


def test_what_is_no_document_and_no_hit_is_refused() -> None:
    with pytest.raises(ReplyError, match="retriever returned str instead of a Document"):
        documents_of(["a text"], 10)
    with pytest.raises(ReplyError, match="searcher returned dict instead of a Hit"):
        hits_of([Hit("A", URL, "a")._asdict()], 10)


def test_a_page_that_cannot_be_used_has_a_problem_and_the_others_stay() -> None:
    wrong: Any = Page(URL, 7)  # type: ignore[arg-type] - as an untyped reader may return
    replies = [Page(URL, "A", ("a",)), wrong, Page(URL, "Empty"), "no page"]
    read, unreadable, empty, other = pages_of(replies, [URL] * 4)
    assert read.problem is None
    assert unreadable.problem == "unreadable"
    assert "page reader returned what is not a page: title: Input should be" in unreadable.detail
    assert (empty.problem, empty.detail) == ("empty", "it holds no text")
    assert other.detail == "the page reader returned str instead of a Page"


def test_documents_hold_no_character_that_a_checkpoint_refuses() -> None:
    (found,) = documents_of([Document("fi\0lter", metadata={"pa\0ge": "1\0"})], 1)
    assert (found.page_content, found.metadata) == ("fi\ufffdlter", {"pa\ufffdge": "1\ufffd"})
