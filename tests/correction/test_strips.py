"""Strips: how they are cut, scored by readings, filtered and shortlisted."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.correction.evidence import named_odds, paragraph_in_context, strips_in_context
from crag.correction.provenance import unscored
from crag.correction.shortlist import shortlist
from crag.correction.strips import decompose, kept_best, split_title, with_title
from crag.parts import Passage
from crag.reading import Reading, compressed, evidence_in, shares_of
from crag.settings import Settings
from crag.state import Source
from crag.testing import FakeReadingEvaluator


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(st.text(max_size=400))
def test_the_default_mode_loses_no_text(text: str) -> None:
    assert squeezed("".join(decompose(text))) == squeezed(text)


def verdicts(scores: list[float], limit: int, threshold: float | None) -> list[tuple[bool, str]]:
    blank = unscored("a", Source(id="1", title="", url="", position=""))
    found = kept_best([{**blank, "score": score} for score in scores], limit, threshold)
    assert [strip["score"] for strip in found] == scores
    return [(strip["kept"], strip["reason"]) for strip in found]


@given(st.lists(st.floats(-1, 1), max_size=40), st.integers(1, 10))
def test_filter_keeps_the_best_that_pass(scores: list[float], limit: int) -> None:
    told = verdicts(scores, limit, -0.5)
    kept = [score for score, (keep, _) in zip(scores, told, strict=True) if keep]
    dropped = [score for score, (keep, _) in zip(scores, told, strict=True) if not keep]
    passing = [score for score in scores if score >= -0.5]
    assert len(kept) == min(limit, max(len(passing), 1), len(scores))
    assert not kept or not dropped or min(kept) >= max(dropped)
    assert all(reason for _, reason in told)


def test_ties_go_to_the_earlier_strip_and_at_least_one_is_kept() -> None:
    assert [keep for keep, _ in verdicts([0.3, 0.3, 0.3], 2, None)] == [True, True, False]
    assert verdicts([-0.4, -0.5, -0.8], 5, -0.5)[:2] == [(True, "among the best")] * 2
    assert verdicts([-0.9, -0.8], 5, -0.5) == [
        (False, "below the strip threshold -0.5"),
        (True, "best of those below the strip threshold"),
    ]


@given(st.text(max_size=8), st.text(max_size=12))
def test_a_string_is_split_where_it_was_joined(title: str, text: str) -> None:
    whole = with_title(title, text)
    found = split_title(whole)
    assert with_title(found.title, found.text) == whole
    if title and text.strip() and " // " not in f"{title} // "[:-3]:
        assert found == Passage(title, text)


def test_rare_words_of_the_question_count_most() -> None:
    found = ["a program", "a program", "a program", "by Ada", "a kettle"]
    assert shortlist("Which program is by Ada?", found, 2, list("aaaaa")) == [0, 3]


def test_a_page_full_of_the_words_does_not_crowd_out_another() -> None:
    stuffed = ["Ada program Ada program"] * 9
    found = [*stuffed, "Something about Ada.", "And something else."]
    assert shortlist("Which program is by Ada?", found, 3, [*"a" * 9, "b", "b"]) == [0, 1, 9]


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
    assert sum(kept) == 8
    few = strips_in_context(QUESTION, documents, readings, Settings(strips_kept=3))
    assert sum(strip["kept"] for strip in few) == 3
    assert {strip["reason"] for strip in few} == {"among the best", "not among the best 3"}


def test_no_evidence_drops_a_strip_and_a_name_that_it_lacks_only_lowers_it() -> None:
    strips = strips_in_context(QUESTION, [DOCUMENT], [read(score=-1.0)], Settings())
    assert [strip["kept"] for strip in strips] == [True, False]
    assert strips[1]["reason"] == "below the strip threshold -0.9997"
    for score, lowered in ((0.9, -0.998867), (0.0, -0.9997)):
        first, _ = strips_in_context("? `second`", [DOCUMENT], [read(score=score)], Settings())
        assert first["score"] == pytest.approx(lowered)
        assert first["kept"]


def test_a_part_scores_by_its_better_half() -> None:
    half = Reading(score=0.6, evidence="0:90 5:10", span=None)
    whole = paragraph_in_context(unscored("Ten chars.", SOURCE), half)
    first = paragraph_in_context(unscored("Five.", SOURCE), half)
    odds = 9 * 4**1.5
    assert whole["score"] == first["score"] == pytest.approx((odds - 1) / (odds + 1))


@pytest.mark.parametrize(
    ("question", "texts", "lost"),
    [
        ("What does 404 mean?", [("", "404 is late."), ("", "It is late.")], 8.0),
        ('Who said "so be it"?', [("", "So be it, he said."), ("", "It is.")], 8.0),
        ("What does no_such mean?", [("", r"no\_such is late."), ("", "It is.")], 8.0),
        ("What is paid in Rome?", [("", "Rome: 5"), ("", "Oslo: 6")], 6.0),
        ("How dear is plan A?", [("", "Plan A: 5"), ("", "Plan B: a 6")], 8.0),
        ("Which limit counts?", [("Limit", "It is 5."), ("Price", "It is 6.")], 2.0),
        ("Which limit counts?", [("", "The limit is 5."), ("", "It is 6.")], 0.0),
        ("What is paid in Kiel?", [("", "Rome: 5"), ("", "Oslo: 6")], 0.0),
    ],
)
def test_a_text_loses_for_a_name_that_another_has(
    question: str, texts: list[tuple[str, str]], lost: float
) -> None:
    assert named_odds(question, texts) == pytest.approx([0.0, -lost])


def test_a_name_counts_the_less_the_more_texts_have_it() -> None:
    texts = [("", "Rome: 5"), ("", "Rome: 6"), ("", "Oslo: 7")]
    assert named_odds("What is paid in Rome?", texts) == pytest.approx([0, 0, -3.0])
    assert named_odds("What is paid in Rome?", []) == []


READING = Reading(score=0.5, evidence="0:0 10:80 20:20", span=None)


@pytest.mark.parametrize(
    ("start", "end", "share"),
    [(0, 10, 0.0), (10, 20, 0.8), (5, 15, 0.4), (10, 30, 0.5), (20, 99, 0.2), (12, 13, 0.8)],
)
def test_evidence_of_a_range_is_the_mean_over_its_characters(
    start: int, end: int, share: float
) -> None:
    assert evidence_in(READING, start, end) == pytest.approx(share)


def test_of_the_best_part_of_a_range() -> None:
    assert evidence_in(READING, 0, 20, best=0.5) == pytest.approx(0.8)
    assert evidence_in(READING, 0, 30, best=0.5) == pytest.approx((0.8 * 10 + 0.2 * 5) / 15)
    assert evidence_in(READING, 0, 5, best=0.5) == 0


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=40))
def test_compressing_loses_rounding_only(pieces: list[tuple[int, float]]) -> None:
    ends = [sum(length for length, _ in pieces[: n + 1]) for n in range(len(pieces))]
    evidence = compressed(ends, [probability for _, probability in pieces])
    reading = Reading(score=0.0, evidence=evidence, span=None)
    begin = 0
    for end, (_, probability) in zip(ends, pieces, strict=True):
        assert evidence_in(reading, begin, end) == pytest.approx(probability, abs=0.0051)
        begin = end
    assert all(one != other for (_, one), (_, other) in pairwise(shares_of(reading)))
