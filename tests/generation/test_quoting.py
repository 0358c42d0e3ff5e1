"""Quotations by readings."""

from textwrap import dedent

import pytest

from crag.generation import ExtractiveAnswerer
from crag.generation.quoting import quotations_in
from crag.parts import Passage, Quotation
from crag.reading import Reading
from crag.runtime.replies import quotations_of
from crag.state import Source, Strip
from crag.testing import FakeReadingEvaluator
from crag.text.as_read import on_few_lines


def strip(text: str, title: str = "") -> Strip:
    source = Source(id="1", title=title, url="", position="")
    return Strip(text=text, source=source, score=0.3, kept=True, reason="")


def quoted(text: str, *evidence: str, **options: float) -> list[Quotation]:
    evaluator = FakeReadingEvaluator(options.get("score", 0.9), *evidence)
    return ExtractiveAnswerer(evaluator).quote("What?", [strip(text)])


QUESTION = "What?"
PROSE = "Nothing of note is here. The answer is\nforty-two indeed. That is all there is."
LIST = "Three things are needed:\n\n- a map of the town\n- a lamp with oil\n- much patience\n"


def test_a_strip_is_quoted_with_its_place_and_the_span() -> None:
    (one,) = quoted(PROSE, "The answer is\nforty-two indeed.")
    assert one.text == " ".join(PROSE.split())
    assert one.place == (0, len(PROSE))
    assert one.span is not None
    assert PROSE[slice(*one.span)] == "The answer is\nforty-two indeed."


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        ("1*4 2*1", "The mill is old.\n\nIt grinds."),
        ("1*2 2*3", "It grinds.\n\nThe inn is new."),
        ("", "The mill is old.\n\nIt grinds.\n\nThe inn is new."),
        ("page", "The mill is old.\n\nIt grinds.\n\nThe inn is new."),
    ],
)
def test_a_quotation_ends_with_the_page_that_the_answer_is_on(places: str, shown: str) -> None:
    text = "The mill is old.\n\nIt grinds.\n\nThe inn is new."
    assert quoted_on(places, text, "grinds")[0].text == shown


def test_a_sentence_that_goes_on_over_the_page_is_quoted_whole() -> None:
    text = "The mill grinds\nthe flour. It is old."
    assert quoted_on("1*1 2*1", text, "flour")[0].text == "The mill grinds the flour. It is old."


def quoted_on(places: str, text: str, *evidence: str) -> list[Quotation]:
    """Quote a strip that knows the page of each of its lines."""
    known = strip(text)
    known["source"]["places"] = places
    return ExtractiveAnswerer(FakeReadingEvaluator(0.9, *evidence)).quote("What?", [known])


def test_a_list_keeps_its_lines_and_what_announces_it() -> None:
    reading = FakeReadingEvaluator(0.9, "a lamp").read("What?", [Passage("", LIST)])[0]
    known: Strip = {**strip(LIST), "score": 0.9, "reading": reading}
    (one,) = quotations_in(QUESTION, [known], most=1, threshold=0.5, closest=-1)
    assert one.text == LIST.strip()
    assert one.place == (0, len(LIST) - 1)
    long: Strip = {**known, "text": LIST + "- one more thing\n" * 20}
    (one,) = quotations_in(QUESTION, [long], most=1, threshold=0.5, closest=-1)
    assert one.text == "Three things are needed:\n\n- a map of the town\n- a lamp with oil\n…"
    maps = "- a map of a town far away from here\n" * 12
    text = f"Three things are needed:\n\n{maps}- patience\n"
    far = FakeReadingEvaluator(0.9, "patience").read("What?", [Passage("", text)])[0]
    long = {**known, "text": text, "reading": far}
    (one,) = quotations_in(QUESTION, [long], most=1, threshold=0.5, closest=-1)
    assert one.text == "Three things are needed:\n…\n- patience"


def test_a_heading_of_a_word_is_quoted_with_the_one_above_it() -> None:
    (one,) = quoted("# Changes\n\n## 3.2 (May)\n\n### Added\n\n- The answer.", "The answer")
    assert one.text == "3.2 (May), Added: The answer."
    text = "### Fixed\n\n- The answer."
    reading = FakeReadingEvaluator(0.9, "The answer").read("What?", [Passage("", text)])[0]
    known: Strip = {**strip(text), "reading": reading, "before": "## 3.1\n\n"}
    (one,) = quotations_in(QUESTION, [known], most=1, threshold=0.5, closest=-1)
    assert one.text == "3.1, Fixed: The answer."
    assert quoted("## Tools\n\n### The old saw\n\n- The answer.", "The answer")[0].text == (
        "The old saw: The answer."
    )


def test_an_item_that_is_quoted_alone_has_no_mark() -> None:
    (one,) = quoted("* The answer is *here*.", "The answer is")
    assert one.text == "The answer is *here*."
    (one,) = quoted("2. The answer is here.", "The answer is")
    assert one.text == "2. The answer is here."
    (one,) = quoted("- The answer\n  is here.", "The answer")
    assert one.text == "The answer is here."
    nested = "- The answer:\n  - this\n  - that"
    assert quoted(nested, "The answer")[0].text == "The answer:\n- this\n- that"
    defined = "- --answer\n\n  It is\n  here.\n\n  ```\n  here\n  ```"
    seen = "--answer\n\nIt is here.\n\n```\nhere\n```"
    assert quoted(defined, "It is")[0].text == seen
    goes_on = "- The answer.\n\nIt is here."
    assert quoted(goes_on, "It is")[0].text == goes_on


@pytest.mark.parametrize(
    ("text", "evidence", "shown"),
    [
        (
            "#### `retries` ####\n\n* Default: 2\n* Type: Number",
            "2",
            "`retries`:\n\n* Default: 2\n* Type: Number",
        ),
        ("Retries\n-------\n\n- Two.", "Two", "Retries: Two."),
        ("# Costs\n## Is it free?\n\nYes.", "Yes", "Is it free? Yes."),
        ("## Use\n\n```\nrun it\n```", "run it", "Use:\n\n```\nrun it\n```"),
        ("## Use\n\nIt is used so:\n\n- a", "a", "It is used so:\n\n- a"),
        ("Wait\n----\n\n(number) The seconds.", "The", "Wait: (number) The seconds."),
        ("<!-- none -->\n\n- Two.", "Two", "Two."),
        ("- Two.", "Two", "Two."),
    ],
)
def test_what_has_no_subject_is_quoted_with_its_heading(
    text: str, evidence: str, shown: str
) -> None:
    assert quoted(text, evidence)[0].text == shown


def test_items_of_an_inner_list_stand_at_the_margin() -> None:
    inner = "  - first()\n\n    The answer.\n\n  - second()\n\n    Another."
    assert quoted(inner, "The answer")[0].text == dedent(inner)


FILLER = "Nothing of note is said in these words, which go on for long enough to be a strip. "
BEFORE = f"One may {'try it very ' * 14}often."
HEAD = "| name | what it is for |\n|---|---|\n"
ROWS = "".join(f"| part{n} | {'a long story of what it is for ' * 3}|\n" for n in range(12))


@pytest.mark.parametrize(
    ("text", "evidence", "shown"),
    [
        (f"{FILLER * 3}{BEFORE} This is the answer.", "This is the answer.",
         f"{BEFORE} This is the answer."),
        (f"{HEAD}{ROWS}", "part9", HEAD),
    ],
)  # fmt: skip
def test_a_strip_is_quoted_with_what_its_beginning_needs(
    text: str, evidence: str, shown: str
) -> None:
    one, *_ = quoted(text, evidence)
    assert one.text.startswith(shown)
    assert evidence in one.text
    assert one.place is not None
    assert evidence in text[slice(*one.place)]


def test_code_that_was_cut_is_quoted_as_code() -> None:
    lines = "\n".join(
        f"    $ run {'the tool again and again ' * 3}{number}" for number in range(12)
    )
    shown = [quoted(f"{opens}\n\n{lines}", "again 11")[0].text for opens in ("::", ".. code:: sh")]
    assert [one.splitlines()[0] for one in shown] == ["```", "```sh"]
    assert all(one.splitlines()[-1] == "```" and one.count("```") == 2 for one in shown)


def test_a_row_of_a_simple_table_is_quoted_in_one_with_its_head() -> None:
    rows = "".join(f"part{n:02}  {'a long story of it ' * 4}{n}\n" for n in range(30))
    rule = f"======  {'=' * 60}\n"
    one, *_ = quoted(f"{rule}name    what\n{rule}{rows}{rule}", "part25")
    assert one.text.startswith("| name | what |\n| --- | --- |\n| part")
    assert "| part25 | a long" in one.text


def test_a_heading_alone_is_not_quoted() -> None:
    assert quoted("Logging\n-------\n\n.. image:: a.png\n", "Logging") == []
    assert quoted("Logging\n-------", "Logging") == []


def test_names_of_code_that_is_documented_elsewhere_are_not_quoted() -> None:
    names = ".. autoclass:: Mill\n   :members:\n\n   .. automethod:: grind\n"
    assert quoted(names, "Mill") == []
    assert quoted(f"Mills\n-----\n\n{names}", "Mill") == []
    assert quoted(f"# Mills\n\n```{{eval-rst}}\n{names}```\n", "Mill") == []
    assert quoted(f"{names}\n   It grinds.\n", "Mill")
    assert quoted("- `Mill`", "Mill")


def test_what_a_strip_needs_is_not_repeated_where_it_is_quoted_already() -> None:
    text = f"{FILLER * 3}{BEFORE} This is the answer."
    found = quoted(text, BEFORE, "This is the answer.")
    assert sum(one.text.count("One may") for one in found) == 1


def test_what_documents_say_in_two_formats_is_quoted_once() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer is")
    formats = [strip("The answer is in git bisect."), strip("The answer is in `git bisect`.")]
    assert len(ExtractiveAnswerer(evaluator).quote("What?", formats)) == 1
    others = [strip("The answer is in git bisect."), strip("The answer is in git bisects.")]
    assert len(ExtractiveAnswerer(evaluator).quote("What?", others)) == 2


def test_of_a_text_that_was_not_read_only_the_best_strips_are_quoted() -> None:
    filler = "Nothing is said of it here. " * 9
    page = f"{filler}\n\nThe answer is here. It is forty-two.\n\n{filler}"
    (one,) = quoted(page, "The answer is here. It is forty-two.")
    assert one.place is not None
    assert len(one.text.split()) < 25
    assert page[slice(*one.place)].split() == one.text.split()
    assert one.span is not None
    assert page[slice(*one.span)] == "The answer is here. It is forty-two."


def test_headings_above_a_strip_are_not_quoted() -> None:
    (one,) = quoted("# Guide\n\n## Usage\n\nThe answer is here.", "The answer is here.")
    assert one.text == "The answer is here."
    assert quoted("# The answer alone", "# The answer alone")[0].text == "# The answer alone"


def test_paragraphs_stay_apart() -> None:
    assert on_few_lines("One\nline. \n\n Two\nlines.") == "One line.\n\nTwo lines."


def test_below_the_threshold_the_closest_passages_are_quoted_as_such() -> None:
    evaluator = FakeReadingEvaluator(-0.9, *(f"Answer number {n} is here." for n in range(4)))
    strips = [strip(f"Answer number {n} is here.") for n in range(4)]
    found = ExtractiveAnswerer(evaluator, threshold=2).quote("What?", strips)
    assert [(one.strip, one.sure, one.further) for one in found] == [
        (0, False, False), (1, False, False)
    ]  # fmt: skip
    assert all(one.sure for one in quoted(PROSE, "The answer is\nforty-two indeed."))


def test_what_is_not_even_close_is_not_quoted() -> None:
    reading = FakeReadingEvaluator(0.9, "The answer").read("What?", [Passage("", PROSE)])[0]
    known: Strip = {**strip(PROSE), "score": -0.9, "reading": reading}
    assert quotations_in(QUESTION, [known], most=4, threshold=0.5, closest=0.9) == []
    assert len(quotations_in(QUESTION, [known], most=4, threshold=0.9999, closest=-1)) == 1


def test_a_quotation_is_no_surer_than_its_document() -> None:
    known = strip("Rain falls in May.")
    best: list[float] = []
    for score in (0.9, 0.2):
        reading = Reading(score=score, starts=[0], evidence=[99], span=None)
        read: Strip = {**known, "score": 0.999999, "reading": reading}
        (one,) = quotations_in(QUESTION, [read], most=1, threshold=0.5, closest=-1)
        assert one.sure == (score > 0.5)
        best.append(one.score)
    assert best == [0.9, 0.2]


def test_what_ends_before_the_picture_that_it_leads_in_is_not_sure() -> None:
    (one,) = quoted("The answer is shown here:", "The answer")
    assert not one.sure
    (one,) = quoted("The answer is shown here.", "The answer")
    assert one.sure


def test_a_sentence_that_leads_in_what_is_left_out_is_not_quoted_unless_it_answers() -> None:
    text = "The mill grinds. These are its parts:"
    assert quoted(text, "grinds")[0].text == "The mill grinds."
    assert quoted(text, "its parts")[0].text == text
    assert quoted("It grinds. To stop it,", "grinds")[0].text == "It grinds."
    assert quoted("It grinds.\n\n**Contact**", "grinds")[0].text == "It grinds."
    text = "The mill grinds. The following picture shows its parts."
    assert quoted(text, "grinds")[0].text == "The mill grinds."
    assert quoted(text, "its parts")[0].text == text


def test_a_comment_that_code_goes_on_with_is_no_heading() -> None:
    known: Strip = {**strip("# What is the port?\nport: 80"), "before": "```yaml\n"}
    (one,) = ExtractiveAnswerer(FakeReadingEvaluator(0.9, "port: 80")).quote("What?", [known])
    assert one.text == "```yaml\n# What is the port?\nport: 80\n```"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "      It grinds\n      flour.\n\n      So.\n\nNo more.",
            "It grinds flour.\n\nSo.\n\nNo more.",
        ),
        ("    a = 1\n    b = 2\n\nThat is all.", "```\na = 1\nb = 2\n```\n\nThat is all."),
        ("        Become gold\n    \n    Gold\n", "Become gold\n\nGold"),
        ("- It\n  grinds\n- So", "- It\n  grinds\n- So"),
        ("      - It\n        grinds\n\n- So", "- It\n  grinds\n\n- So"),
    ],
)
def test_lines_are_moved_to_the_margin_with_the_first_one(text: str, shown: str) -> None:
    assert quoted(text)[0].text == shown


def test_what_goes_on_from_within_a_line_is_moved_to_the_margin() -> None:
    filler = "Filler is here in many words. " * 12
    text = f"      {filler}\n      More. It grinds\n      flour."
    assert quoted(text, "It grinds\n      flour")[0].text.endswith("It grinds flour.")


def test_what_makes_an_answer_long_is_left_to_those_who_ask_for_more() -> None:
    texts = [f"Answer number {n} is here, {'in many words ' * 10}." for n in range(4)]
    evaluator = FakeReadingEvaluator(0.9, *texts)
    found = ExtractiveAnswerer(evaluator).quote("What?", [strip(text) for text in texts])
    assert [one.further for one in found] == [False, True, True, True]


@pytest.mark.parametrize(
    ("text", "balanced"),
    [
        ("Run it:\n\n```bash\nx serve\n```", None),
        ("Run it:\n\n```bash\nx serve", "Run it:\n\n```bash\nx serve\n```"),
        ("x serve\nx stop\n```", "```\nx serve\nx stop\n```"),
    ],
)
def test_fences_of_a_quotation_are_balanced(text: str, balanced: str | None) -> None:
    reading = FakeReadingEvaluator(0.9, "x serve").read("What?", [Passage("", text)])[0]
    known: Strip = {**strip(text), "score": 0.9, "reading": reading}
    found = quotations_in(QUESTION, [known], most=1, threshold=0.5, closest=-1)
    assert quotations_of(found, [known])[0].text == (balanced or text)


@pytest.mark.parametrize("text", ["///", "```", "| --- | --- |", "* * *"])
def test_a_text_without_words_is_not_quoted(text: str) -> None:
    reading = FakeReadingEvaluator(0.9, text).read("What?", [Passage("", text)])[0]
    known: Strip = {**strip(text), "score": 0.99, "reading": reading}
    assert quotations_in(QUESTION, [known], most=1, threshold=0.5, closest=-1) == []


def test_a_span_that_is_less_likely_than_no_answer_is_not_marked() -> None:
    reading = FakeReadingEvaluator(0.9, "The answer").read("What?", [Passage("", PROSE)])[0]
    assert reading["span"] is not None
    unlikely: Strip = {
        **strip(PROSE),
        "score": 0.9,
        "reading": {**reading, "span": {**reading["span"], "score": -0.1}},
    }
    assert quotations_in(QUESTION, [unlikely], most=1, threshold=0.5, closest=-1)[0].span is None


def test_a_strip_far_below_the_best_is_not_quoted() -> None:
    reading = FakeReadingEvaluator(0.9, "The answer").read("What?", [Passage("", PROSE)])[0]
    best: Strip = {**strip(PROSE), "score": 0.99, "reading": reading}
    near: Strip = {**best, "text": "Nearly as good.", "score": 0.9}
    far: Strip = {**best, "text": "Much worse.", "score": 0.1}
    found = quotations_in(QUESTION, [far, near, best], most=4, threshold=0.5, closest=-1)
    assert [one.strip for one in found] == [2, 1]


def test_a_strip_below_a_heading_with_the_words_of_the_question_comes_first() -> None:
    reading = FakeReadingEvaluator(0.9, "The answer").read(QUESTION, [Passage("", PROSE)])[0]
    listed: Strip = {**strip("Settings of strips."), "score": 0.92, "reading": reading}
    told = "## What a knowledge strip is\n\nA strip is a piece of text."
    defined: Strip = {**listed, "text": told, "score": 0.9}

    def first(question: str) -> int:
        limits = {"threshold": 0.5, "closest": -1}
        return quotations_in(question, [listed, defined], most=2, **limits)[0].strip

    assert first("What is a knowledge strip?") == 1
    assert first("What is a strip of knowledge for?") == 1
    assert first("What is a knowledge graph?") == 0


def test_a_text_is_quoted_once_and_no_more_than_asked_for() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer is right here.")
    strips = [strip("The answer is right here.")] * 2
    assert [one.strip for one in ExtractiveAnswerer(evaluator).quote("What?", strips)] == [0]
    many = [strip(f"Answer number {n} is here.") for n in range(9)]
    evaluator = FakeReadingEvaluator(0.9, *(one["text"] for one in many))
    assert len(ExtractiveAnswerer(evaluator).quote("What?", many)) == 4
    assert len(ExtractiveAnswerer(evaluator, most=2).quote("What?", many)) == 2


def test_strips_that_were_read_are_not_read_again() -> None:
    evaluator = FakeReadingEvaluator(0.9, "The answer")
    reading = evaluator.read("What?", [Passage("", PROSE)])[0]
    known: Strip = {**strip(PROSE), "score": 0.9, "reading": reading}
    unread = strip("Not read yet.", "T")
    quotations = ExtractiveAnswerer(evaluator).quote("What?", [known, unread])
    assert {one.strip for one in quotations} <= {0, 1}
    assert evaluator.read_passages[1:] == [[Passage("T", "Not read yet.")]]


ASKED = "How do I switch the lamp off?"


@pytest.mark.parametrize(
    ("text", "is_quoted"),
    [
        (f'from lamps import lamp\n\nQUESTION = "{ASKED}"\n', False),
        (f"Q: {ASKED}\nA: Press the button twice.\n", True),
        (f"## {ASKED}\n\nPress the button twice.\n", True),
    ],
)
def test_the_question_itself_is_no_answer(text: str, *, is_quoted: bool) -> None:
    evaluator = FakeReadingEvaluator(0.9, "How do I switch the lamp off")
    found = ExtractiveAnswerer(evaluator).quote(ASKED, [strip(text)])
    assert [("Press the button twice." in one.text) for one in found] == [True] * is_quoted


CONTENTS = "- 3. Travel\n- Which receipts do\n  I need to keep?\n- Meals and expenses\n"


@pytest.mark.parametrize(
    ("text", "is_quoted"),
    [
        (CONTENTS, False),
        ("- Which receipts do I need to keep?\n2. Which receipts do I send?", False),
        (f"{CONTENTS}\nKeep those of rental cars.", True),
        ("Which receipts do I need to keep? Those of rental cars.", True),
        ("Which receipts do I need to keep?\n\n`receipts --all`", True),
        ("Keep which receipts you like. Why not?", True),
        ("Keep which receipts you like\n\nWhy not?", True),
        ("- What do I keep? Which receipts you like\n- Why? It is simple", True),
    ],
)
def test_the_contents_of_a_page_are_no_answer(text: str, *, is_quoted: bool) -> None:
    assert bool(quoted(text, "hich receipts")) == is_quoted


def test_a_question_that_is_marked_as_a_whole_is_no_answer() -> None:
    assert not quoted(CONTENTS, "Which receipts do\n  I need to keep?")
    assert quoted("Who signs? The manager", "signs? The manager")
