"""Quotations by readings."""

from crag.generation import ExtractiveAnswerer
from crag.parts import Passage, Quotation
from crag.state import Source, Strip
from crag.testing import FakeReadingEvaluator


def strip(text: str, title: str = "") -> Strip:
    source = Source(id="1", title=title, url="", position="")
    return Strip(text=text, source=source, score=0.3, kept=True, reason="")


def quoted(text: str, *evidence: str, **options: float) -> list[Quotation]:
    evaluator = FakeReadingEvaluator(options.get("score", 0.9), *evidence)
    return ExtractiveAnswerer(evaluator).quote("What?", [strip(text)])


PROSE = "Nothing of note is here. The answer is\nforty-two indeed. That is all there is."
LIST = "Three things are needed:\n\n- a map of the town\n- a lamp with oil\n- much patience\n"
TABLE = "| name | age |\n|---|---|\n| Ada Lovelace | 36 years |\n| Alan Turing | 41 years |\n"
CODE = "Install it like this:\n\n```\npip install corrective-rag\n```\n"


def test_a_sentence_is_quoted_on_one_line_with_its_place_and_the_span() -> None:
    (one,) = quoted(PROSE, "The answer is\nforty-two indeed.")
    assert one.text == "The answer is forty-two indeed."
    assert one.place is not None
    assert one.span is not None
    assert PROSE[slice(*one.place)] == PROSE[slice(*one.span)] == "The answer is\nforty-two indeed."


def test_a_list_comes_with_the_sentence_that_announces_it() -> None:
    (one,) = quoted(LIST, "a lamp with oil")
    assert one.text == LIST.strip()


def test_a_row_comes_with_the_header_of_its_table() -> None:
    (one,) = quoted(TABLE, "Alan Turing", "41 years")
    assert one.text == "| name | age |\n| Alan Turing | 41 years |"


def test_a_header_alone_is_not_quoted() -> None:
    assert quoted(TABLE, "| name | age |") == []


def test_code_comes_with_its_caption() -> None:
    assert [one.text for one in quoted(CODE, "pip install corrective-rag")] == [CODE.strip()]


def test_sentences_in_a_row_are_one_quotation() -> None:
    (one,) = quoted(PROSE, "The answer is\nforty-two indeed.", "That is all there is.")
    assert one.text == "The answer is forty-two indeed. That is all there is."


def test_nothing_below_the_threshold_is_quoted() -> None:
    assert quoted(PROSE, "The answer is\nforty-two indeed.", score=-0.9) == []
    assert quoted(PROSE) == []


def test_a_sentence_is_quoted_once_and_no_more_than_asked_for() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer is right here.")
    strips = [strip("The answer is right here.")] * 2
    assert [one.strip for one in ExtractiveAnswerer(evaluator).quote("What?", strips)] == [0]
    many = [strip(f"Answer number {n} is here.") for n in range(9)]
    evaluator = FakeReadingEvaluator(0.9, *(one["text"] for one in many))
    assert len(ExtractiveAnswerer(evaluator).quote("What?", many)) == 5
    assert len(ExtractiveAnswerer(evaluator, most=2).quote("What?", many)) == 2


def test_strips_that_were_read_are_not_read_again() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer")
    known: Strip = {**strip(PROSE), "reading": evaluator.read("What?", [Passage("", PROSE)])[0]}
    quotations = ExtractiveAnswerer(evaluator).quote("What?", [known, strip("Not read yet.", "T")])
    assert [one.strip for one in quotations] == [0]
    assert evaluator.read_passages[1:] == [[Passage("T", "Not read yet.")]]
