"""Quotations: whole, verbatim, with their subject, by readings or by scores."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.answering.quoting import REASON, quotations_in
from crag.correction.evidence import score_odds, strips_in_context
from crag.generation import ExtractiveAnswerer
from crag.parts import Passage, Quotation
from crag.reading import Reading
from crag.settings import Settings
from crag.state import Source, Strip
from crag.testing import FakeEvaluator, FakeReadingEvaluator

PROSE = "Nothing of note is here. The answer is\nforty-two indeed. That is all there is."
LIST = "Three things are needed:\n\n- a map of the town\n- a lamp with oil\n- much patience\n"
FILLER = "Nothing of note is said in these words, which go on for long enough to be a strip. "
HEAD = "| name | what it is for |\n| --- | --- |\n"
ROWS = "".join(f"| part{n} | {'a long story of what it is for ' * 3}|\n" for n in range(12))
CODE = "\n".join(f"$ run {'the tool again and again ' * 3}{n}\n" for n in range(20))


def strip(text: str, **keys: object) -> Strip:
    source = Source(id="1", title="", url="", position="")
    made = Strip(text=text, kind="document", source=source, score=0.3, kept=True, reason="")
    return {**made, **keys}  # type: ignore[typeddict-item]


def quoted(text: str, *evidence: str, **options: float) -> list[Quotation]:
    evaluator = FakeReadingEvaluator(options.get("score", 0.9), *evidence)
    return ExtractiveAnswerer(evaluator).quote("What?", [strip(text)])


def asked(question: str, *documents: Document, evidence: Sequence[str] = ()) -> list[Quotation]:
    """Retrieve these documents, refine and quote as a run does."""
    evaluator = FakeReadingEvaluator(0.9, *evidence)
    texts = [Passage("", document.page_content) for document in documents]
    readings = evaluator.read(question, texts)
    strips = strips_in_context(question, documents, readings, Settings())
    return ExtractiveAnswerer(evaluator).quote(question, [one for one in strips if one["kept"]])


@pytest.mark.parametrize(
    ("text", "evidence", "shown", "lead"),
    [
        (LIST, "a lamp", LIST.strip(), ""),
        (LIST + "- one more thing\n" * 40, "a lamp",
         "Three things are needed:\n\n- a map of the town\n- a lamp with oil", ""),
        ("* The answer is *here*.", "The answer", "The answer is *here*.", ""),
        ("2. The answer is here.", "The answer", "2. The answer is here.", ""),
        ("- The answer\n  is here.", "The answer", "The answer\nis here.", ""),
        ("- The answer:\n  - this\n  - that", "The answer", "The answer:\n- this\n- that", ""),
        ("#### `retries`\n\n- Default: 2\n- Type: Number", "2",
         "- Default: 2\n- Type: Number", "`retries`:"),
        ("# Costs\n\n## Is it free?\n\nYes.", "Yes", "Yes.", "Is it free?"),
        ("## Use\n\n```\nrun it\n```", "run it", "```\nrun it\n```", "Use:"),
        ("## Use\n\nIt is used so:\n\n- a", "a", "It is used so:\n\n- a", ""),
        ("# Guide\n\n## Usage\n\nThe answer is here.", "The answer", "The answer is here.", ""),
        ("Run it:\n\n```sh\nx", "x", "Run it:\n\n```sh\nx\n```", ""),
        ("It grinds.\n\n# Other\n\nNo more.", "grinds", "It grinds.", ""),
        ("One line.  \nAnother.", "Another", "One line.  \nAnother.", ""),
        ("It is so. Use these:\n\n- a\n- b\n\nDone.", "so",
         "It is so. Use these:\n\n- a\n- b", ""),
    ],
)  # fmt: skip
def test_what_is_read_together_is_quoted(text: str, evidence: str, shown: str, lead: str) -> None:
    one = quoted(text, evidence)[0]
    assert one.text.startswith(shown)
    assert len(one.text) == len(shown) or one.text.endswith("\n…")
    assert one.lead == lead


@pytest.mark.parametrize(
    ("text", "evidence", "begins", "ends"),
    [
        (f"{HEAD}{ROWS}", "part9", HEAD, "|"),
        (f"{HEAD}{ROWS}", "what it is for", f"{HEAD}| part0", "|"),
        (f"So:\n\n```sh\n{CODE}```", "again 18", "So:\n\n```sh\n$ run", "```"),
        (f"These:\n\n{ROWS.replace('| part', '- part')}", "part9", "These:\n…\n- part", "…"),
    ],
)
def test_a_part_of_a_long_block_is_quoted_with_what_it_needs(
    text: str, evidence: str, begins: str, ends: str
) -> None:
    one, *_ = quoted(text, evidence)
    assert one.text.startswith(begins)
    assert one.text.endswith(ends)
    assert evidence in one.text
    assert one.place is not None
    assert evidence in text[slice(*one.place)]


PARTS = (
    "# Guide\n\n", "## Use\n\n", "It grinds flour. ", "So: ", "The answer is here. ", "\n\n",
    "- an item\n", "- the answer item\n", "1. first\n", "| a | b |\n| --- | --- |\n| c | d |\n\n",
    "```\ncode\n```\n\n", "Words go on and on for a while in this one. ",
)  # fmt: skip


@pytest.mark.parametrize(
    ("items", "question", "shown"),
    [
        (["E-110 The heater is too hot.", "E-111 Its sensor is broken.", "E-120 It has stopped."],
         "What does E-111 mean?", 1),
        (["**E-101** The tank is empty.", "**E-102** The lid is open.", "**E-103** It is hot."],
         "Which message says that the lid is open?", 1),
        (["Name: Lena Vogt\nRole: Customs clerk\nPhone: 4473",
          "Name: Tom Reilly\nRole: Night guard\nPhone: 4474"], "Who is the night guard?", 1),
        (["E41 means that the Kestrel has no signal. Remedy: turn the antenna to the window."],
         "What does E41 of the Kestrel mean?", 0),
        (["| Lena | clerk | 4473 |", "| Tom | guard | 4474 |"], "What is the phone of Lena?", 0),
    ],
)  # fmt: skip
def test_of_a_list_the_item_that_was_asked_for_is_quoted(
    items: list[str], question: str, shown: int
) -> None:
    text = ("\n" if items[0].startswith("|") else "\n\n").join(items)
    evaluator = FakeReadingEvaluator(0.9, items[0].rpartition(" ")[2])
    (one,) = ExtractiveAnswerer(evaluator).quote(question, [strip(text)])
    assert one.text == " ".join(items[shown].split())


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=20).map("".join))
def test_every_quotation_stands_in_its_text_word_by_word(text: str) -> None:
    for one in quoted(text, "answer"):
        said = one.text.replace("…", " ").split()
        for paragraph in one.text.replace("…", "\n\n").split("\n\n"):
            assert " ".join(paragraph.split()).strip("- ") in " ".join(text.split())
        assert said
        assert one.place is not None
        start, end = one.place
        assert 0 <= start < end <= len(text)
        assert " ".join(text[start:end].split()).split()[-1] in said


@pytest.mark.parametrize("text", ["///", "| --- | --- |", "* * *", "# A heading", "# A\n\n## B"])
def test_what_has_no_words_of_its_own_is_not_quoted(text: str) -> None:
    assert quoted(text, text) == []


def test_what_documents_say_in_two_formats_is_quoted_once() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer is")
    formats = [strip("The answer is in git bisect."), strip("The answer is in `git bisect`.")]
    assert len(ExtractiveAnswerer(evaluator).quote("What?", formats)) == 1


def test_of_a_text_that_was_not_read_only_the_best_strip_leads() -> None:
    filler = "Nothing is said of it here. " * 9
    page = f"{filler}\n\nThe answer is here. It is forty-two.\n\n{filler}"
    one, *_ = quoted(page, "The answer is here")
    assert one.place is not None
    assert page[slice(*one.place)].split() == one.text.split()
    assert one.span is not None
    assert page[slice(*one.span)] == "The answer is here"


def test_below_the_threshold_two_are_likely_and_below_the_closest_none() -> None:
    texts = [f"The {name} is here." for name in ("mill", "inn", "barn", "lake")]
    evaluator = FakeReadingEvaluator(-0.9, *texts, quote_threshold=2)
    strips = list(map(strip, texts))
    found = ExtractiveAnswerer(evaluator).quote("What?", strips)
    assert [one.sure for one in found] == [False] * 2
    (read,) = evaluator.read("What?", [Passage("", PROSE)])
    known = strip(PROSE, reading=read)
    assert quotations_in("What?", [known], most=4, threshold=0.5, closest=0.95) == []
    assert len(quotations_in("What?", [known], most=4, threshold=0.9999, closest=-1)) == 1


def test_a_quotation_is_no_surer_than_its_document_or_its_words() -> None:
    def rain(question: str, score: float, evidence: str) -> Quotation:
        known = strip(
            "Rain falls in May.", reading=Reading(score=score, evidence=evidence, span=None)
        )
        return quotations_in(question, [known], most=1, threshold=0.9, closest=0.2)[0]

    for score in (0.9, 0.2):
        one = rain("What?", score, "0:99")
        assert (one.sure, one.score) == (score == 0.9, score)
    odds = [score_odds(rain(question, 0.99, "0:60").score) for question in ("What?", "Why?")]
    assert odds == pytest.approx([2.69877, 2.69877 - REASON])


def test_the_place_of_a_quotation_is_in_the_strip_without_what_stands_before() -> None:
    for before, text, place in (
        ("These are needed:\n\n", "- a map\n- the answer", (0, 20)),
        ("Begun. ", f"{FILLER * 4}\n\nThe answer is here.", (83, 353)),
    ):
        (reading,) = FakeReadingEvaluator(0.9, "answer").read("What?", [Passage("", text)])
        known = strip(text, before=before, reading=reading)
        (one,) = quotations_in("What?", [known], most=1, threshold=0.5, closest=-1)
        assert (one.place, one.span and text[slice(*one.span)]) == (place, "answer")


def test_of_strips_read_as_nearly_equal_the_one_closest_in_meaning_leads() -> None:
    shares = {"Mills grind.": 90, "Rain falls in May.": 80, "Boats are built.": 1}
    strips = [
        strip(text, reading=Reading(score=0.9, evidence=f"0:{share}", span=None), headings=["Year"])
        for text, share in shares.items()
    ]
    compared: list[str] = []

    def similarity(question: str, texts: Sequence[str]) -> list[float]:
        compared.extend([question, *texts])
        return [float("Rain" in text) for text in texts]

    for alike, first in ((None, "Mills grind."), (similarity, "Rain falls in May.")):
        best, *_ = quotations_in(
            "When does it rain?", strips, most=1, threshold=0.5, closest=-1, similarity=alike
        )
        assert best.text == first
    assert compared == ["When does it rain?", "Year\nMills grind.", "Year\nRain falls in May."]


def test_another_quotation_covers_more_of_the_question_or_contradicts_one() -> None:
    texts = [
        "The museum opens at nine.", "The museum opens on Mondays too.", "A ticket is 5 pounds.",
        "A ticket is 7 pounds.", "The river is long.",
    ]  # fmt: skip
    question = "When does the museum open, what is a ticket, and by which river?"
    found = asked(question, *map(Document, texts), evidence=texts[:4])
    assert [one.text for one in found] == [texts[0], *texts[2:4]]
    texts = ["Museum: open.", "Open the museum at ten."]
    (one,) = asked(
        "When does the museum open?", *map(Document, texts), evidence=[texts[0], "at ten"]
    )
    assert one.text == texts[0]


GUIDE, TURING = (
    Source(id="1", title=title, url="", position="") for title in ("Guide", "Alan Turing")
)
STRIPS = [
    strip("Nothing of note is here. The answer is forty-two indeed.", source=GUIDE),
    strip("# A heading with the answer\n\nAnother answer stands right here. Short answer."),
]


def test_the_best_sentences_are_quoted_in_order_of_the_strips() -> None:
    evaluator = FakeEvaluator({"Another answer": 0.9, "answer": 0.6}, upper=0.5)
    quotations = ExtractiveAnswerer(evaluator).quote("What?", STRIPS)
    assert [(quoted.text, quoted.strip) for quoted in quotations] == [
        ("The answer is forty-two indeed.", 0),
        ("Another answer stands right here.", 1),
    ]
    assert len(evaluator.calls) == 1


def test_a_sentence_is_scored_with_the_title_of_its_source() -> None:
    evaluator = FakeEvaluator(0.9)
    said = [strip("He was born in the year 1912.", source=TURING)]
    assert len(ExtractiveAnswerer(evaluator).quote("When was he born?", said)) == 1
    assert evaluator.calls[0][1] == ["Alan Turing // He was born in the year 1912."]


def test_nothing_below_the_threshold_is_quoted() -> None:
    evaluator = FakeEvaluator({"answer": 0.6}, upper=0.7)
    assert ExtractiveAnswerer(evaluator).quote("What?", STRIPS) == []
    assert ExtractiveAnswerer(evaluator).quote("What?", []) == []


def test_a_sentence_is_quoted_once_and_no_more_than_three() -> None:
    twice = [strip("The answer is right here."), strip("The answer is right here.")]
    assert len(ExtractiveAnswerer(FakeEvaluator(0.9)).quote("What?", twice)) == 1
    many = [strip(f"Answer number {n} is here.") for n in range(9)]
    assert len(ExtractiveAnswerer(FakeEvaluator(0.9)).quote("What?", many)) == 3
