"""Strips that are scored by the reading of their document."""

import pytest
from langchain_core.documents import Document

from crag.correction.evidence import (
    STRIPS_KEPT_IN_CONTEXT,
    paragraph_in_context,
    strips_in_context,
)
from crag.correction.provenance import unscored
from crag.parts import Passage
from crag.reading import Reading
from crag.settings import Settings
from crag.state import Source
from crag.testing import FakeReadingEvaluator

TEXT = "The first fact is here. So is more.\n\nAnd filler. The second fact is here. And an end."
DOCUMENT = Document(TEXT, metadata={"title": "Facts", "source": "facts.md", "lines": "7 8 9"})
QUESTION = "What?"
SOURCE = Source(id="1", title="", url="", position="")


def read(*evidence: str, score: float = 0.9) -> Reading:
    return FakeReadingEvaluator(score, *evidence).read("What?", [Passage("Facts", TEXT)])[0]


def test_a_strip_with_evidence_scores_above_one_without() -> None:
    strips = strips_in_context(QUESTION, [DOCUMENT], [read("The second fact is here.")], Settings())
    assert [strip["text"] for strip in strips] == [
        "The first fact is here. So is more.\n\nAnd filler.",
        "The second fact is here. And an end.",
    ]
    assert strips[0]["score"] < 0.5 < strips[1]["score"]  # type: ignore[operator]
    assert all(strip["kept"] and strip["reason"] == "among the best" for strip in strips)


def test_a_strip_knows_its_own_lines_and_reading() -> None:
    first, second = strips_in_context(QUESTION, [DOCUMENT], [read("second fact")], Settings())
    assert first["source"]["position"] == "lines 7-9"
    assert (second["source"]["position"], second["source"]["lines"]) == ("line 9", "9")
    span = second["reading"]["span"]
    assert span is not None
    assert second["text"][span["start"] : span["end"]] == "second fact"
    assert first["reading"]["span"] is None


def test_lines_that_a_part_of_a_table_repeats_are_not_its_place() -> None:
    text = "| a | b |\n| --- | --- |\n| c | d |\n| e | f |"
    known = {"position": "rows 8-9", "lines": "1*2 8 9", "repeats": 2, "section": "Parts > Steel"}
    (strip,) = strips_in_context(QUESTION, [Document(text, metadata=known)], [read()], Settings())
    assert strip["source"]["position"] == "rows 8-9"
    assert strip["source"]["repeats"] == 2
    assert strip["headings"] == ["Parts", "Steel"]


def test_a_document_further_down_counts_less_and_a_better_one_more() -> None:
    evidence = read("second fact")
    both = strips_in_context(QUESTION, [DOCUMENT] * 2, [evidence] * 2, Settings())
    assert both[1]["score"] > both[3]["score"]  # type: ignore[operator]
    worse = {**evidence, "score": -0.9}
    graded = strips_in_context(QUESTION, [DOCUMENT] * 2, [worse, evidence], Settings())
    assert graded[1]["score"] < graded[3]["score"]  # type: ignore[operator]


def test_eight_are_kept_unless_the_settings_say_otherwise() -> None:
    documents, readings = [DOCUMENT] * 8, [read("fact")] * 8
    kept = [strip["kept"] for strip in strips_in_context(QUESTION, documents, readings, Settings())]
    assert sum(kept) == STRIPS_KEPT_IN_CONTEXT == 8
    few = strips_in_context(QUESTION, documents, readings, Settings(strips_kept=3))
    assert sum(strip["kept"] for strip in few) == 3
    assert {strip["reason"] for strip in few} == {"among the best", "not among the best 3"}


def test_what_is_certainly_no_evidence_is_dropped_but_for_the_best() -> None:
    strips = strips_in_context(QUESTION, [DOCUMENT], [read(score=-1.0)], Settings())
    assert [strip["kept"] for strip in strips] == [True, False]
    assert strips[1]["reason"] == "below the strip threshold -0.9997"


def test_a_part_scores_by_its_better_half() -> None:
    half = Reading(score=0.0, evidence="0:90 5:10", span=None)
    whole = paragraph_in_context(unscored("Ten chars.", SOURCE), half)
    first = paragraph_in_context(unscored("Five.", SOURCE), half)
    assert whole["score"] == first["score"] == pytest.approx(0.8)
