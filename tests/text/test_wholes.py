"""The smallest part of a text that can be read alone."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crag.correction.strips import decompose
from crag.text.wholes import contexts_of, excerpt_at, lines_of, pieces_of, whole_at

MARKDOWN = """# Install

Install it with pip. It needs Python 3.11 or newer. Older ones are refused.

There are two ways to do it:

- With pip, as in `pip install x`, which
  takes a minute.
- With conda.

| name | meaning |
|------|---------|
| a    | first   |
| b    | second  |

Run this command:

```bash
x serve

x stop
```

!!! note
    This is a note.

    It goes on.

After it.
"""
RST = """Title
=====

Use the following code::

    import x
    x.run()

.. note:: Be careful.

   Very careful.

Next.
"""


@pytest.mark.parametrize(
    ("text", "word", "whole"),
    [
        (MARKDOWN, "Older", ["Older ones are refused."]),
        (MARKDOWN, "newer", ["Install it with pip. It needs Python 3.11 or newer."]),
        (
            MARKDOWN, "takes",
            ["There are two ways to do it:",
             "- With pip, as in `pip install x`, which\n  takes a minute."],
        ),
        (MARKDOWN, "conda", ["There are two ways to do it:", "- With conda."]),
        (MARKDOWN, "second", ["| name | meaning |\n|------|---------|", "| b    | second  |"]),
        (MARKDOWN, "x stop", ["Run this command:", "```bash\nx serve\n\nx stop\n```"]),
        (MARKDOWN, "Run this", ["Run this command:", "```bash\nx serve\n\nx stop\n```"]),
        (MARKDOWN, "goes on", ["!!! note\n    This is a note.\n\n    It goes on."]),
        (MARKDOWN, "# Install", ["Install it with pip."]),
        ("It is so. Type this: \n```\nx\n```", "x", ["Type this:", "```\nx\n```"]),
        (RST, "import", ["Use the following code::", "    import x\n    x.run()"]),
        (RST, "Very", [".. note:: Be careful.\n\n   Very careful."]),
        ("", "", []),
        ("\n \n# Only a heading\n", "Only", []),
    ],
)  # fmt: skip
def test_a_place_is_read_with_what_it_needs(text: str, word: str, whole: list[str]) -> None:
    assert [text[start:end] for start, end in whole_at(text, text.index(word))] == whole


def contexts(text: str, starts: Sequence[int]) -> list[str]:
    return contexts_of(text, list(pieces_of(text)), starts)


def test_a_short_text_is_quoted_whole_and_a_longer_one_as_far_as_it_fits() -> None:
    def quoted(text: str, word: str, most: int) -> str:
        return " | ".join(text[a:b] for a, b in excerpt_at(text, text.index(word), most))

    text = "One is here. Two is there. Three is far away. Four is near."
    assert quoted(text, "Two", 13) == text
    assert quoted(text, "Two", 7) == "Two is there. Three is far away."
    assert quoted(text, "Two", 2) == "Two is there."
    leaning = "One is here.\n\nIt is far away.\n\nIt is old. Two is there."
    assert quoted(leaning, "old", 10) == "One is here.\n\nIt is far away.\n\nIt is old."
    assert quoted(leaning, "Two", 6) == "Two is there."
    assert quoted(leaning, "old", 4) == "It is old."
    assert quoted(f"{text}\n\n- a\n- b\n", "Four", 7) == "Four is near.\n\n- a\n- b"


LIST = (
    "Pick one.\n\nThere are three ways:\n\n- by air\n- by sea\n- by land\n\nAll of them are slow."
)
STEPS = "# Tea\n\n1. Boil the water.\n2. Warm the pot.\n3. Wait for three minutes."
TABLE = "| way | days |\n|---|---|\n| air | 1 |\n| sea | 30 |\n\nAll are very slow."

TITLED = """====
Mill
====

It grinds.

1. 'Use' of it
--------------

It is used. It
==============

- stays
---
"""


def test_titles_with_rules_are_headings() -> None:
    kinds = [(piece.kind, TITLED[piece.start : piece.end]) for piece in pieces_of(TITLED)]
    assert kinds[:3] == [("heading", "===="), ("heading", "Mill"), ("heading", "====")]
    assert kinds[4:6] == [("heading", "1. 'Use' of it"), ("heading", "--------------")]
    assert "heading" not in {kind for kind, _ in kinds[8:]}


LOOSE = """# Kiln

1. Open the valve.

2. Run the check:

   ```sh
kiln check
   ```

   It takes a while.

3. Pick a speed:
   - slow

     | turns | hours |
     |-------|-------|
     | 3     | 9     |

   - fast

Then wait."""


@pytest.mark.parametrize(
    ("word", "most", "whole"),
    [
        ("Open", 60, "1. Open the valve."),
        ("kiln check", 1, LOOSE[LOOSE.index("2.") : LOOSE.index("\n\n3.")]),
        ("a while", 1, LOOSE[LOOSE.index("2.") : LOOSE.index("\n\n3.")]),
        ("fast", 60, LOOSE[LOOSE.index("3. P") : LOOSE.index("\n\nThen")]),
        ("fast", 1, "- fast"),
        ("9  ", 60, LOOSE[LOOSE.index("3. P") : LOOSE.index("\n\nThen")]),
        ("9  ", 1, "| turns | hours |\n     |-------|-------| | | 3     | 9     |"),
        ("Then", 60, "Then wait."),
    ],
)
def test_a_list_is_one_piece_with_all_that_its_items_hold(word: str, most: int, whole: str) -> None:
    steps = [LOOSE[piece.start : piece.end] for piece in pieces_of(LOOSE)][1]
    assert steps == LOOSE[LOOSE.index("1.") : LOOSE.index("\n\nThen")]
    ranges = whole_at(LOOSE, LOOSE.index(word), most)
    assert " | ".join(LOOSE[start:end].strip() for start, end in ranges) == whole


@pytest.mark.parametrize(
    ("text", "word", "most", "with_block", "whole"),
    [
        (LIST, "Pick", 6, 0, "Pick one."),
        (LIST, "Pick", 6, 15, LIST[: LIST.index("\n\nAll")]),
        (LIST, "sea", 6, 0, "There are three ways: | - by sea"),
        (LIST, "sea", 6, 13, LIST[LIST.index("There") : LIST.index("\n\nAll")]),
        (LIST, "slow", 6, 13, "All of them are slow."),
        (STEPS, "Warm", 6, 90, "2. Warm the pot."),
        (TABLE, "days", 6, 20, TABLE.partition("\n\n")[0]),
        (TABLE, "sea", 6, 20, TABLE.partition("\n\n")[0]),
        ("Use one. It is free. The ways are:", "Use", 6, 90, "Use one. It is free."),
    ],
)  # fmt: skip
def test_what_is_led_in_is_quoted_whole_or_not_at_all(
    text: str, word: str, most: int, with_block: int, whole: str
) -> None:
    ranges = excerpt_at(text, text.index(word), most, with_block)
    assert " | ".join(text[start:end] for start, end in ranges) == whole


@given(st.text(alphabet="ab .:\n#-*|`>!1)", max_size=200))
@example("::\n")
def test_pieces_hold_all_of_a_text_in_order(text: str) -> None:
    end = 0
    for piece in pieces_of(text):
        assert not text[end : piece.start].strip()
        assert text[piece.start : piece.end].strip()
        end = piece.end
    assert not text[end:].strip()


@given(st.text(alphabet="ab .:\n#-*|`>!1)", max_size=200), st.integers(0, 220), st.integers(1, 9))
def test_ranges_lie_in_the_text_in_order_and_do_not_overlap(
    text: str, place: int, most: int
) -> None:
    for ranges in (whole_at(text, place), excerpt_at(text, place, most)):
        edges = [edge for one in ranges for edge in one]
        assert edges == sorted(edges)
        assert all(0 <= edge <= len(text) for edge in edges)
        assert all(text[start:end].strip() for start, end in ranges)


CUT = """Two ways are open. It is best to take both.

Some kinds are these:

- one
- two

| a | b |
|---|---|
| 1 | 2 |
| 3 | 4 |

| no | head |
| at | all |
"""


@pytest.mark.parametrize(
    ("begins", "context"),
    [
        ("Two ways", ""),
        ("It is best", "Two ways are open. "),
        ("Some kinds", ""),
        ("- one", "Some kinds are these:\n\n"),
        ("- two", "Some kinds are these:\n\n"),
        ("| a |", ""),
        ("| 3 |", "| a | b |\n|---|---|\n"),
        ("| at", ""),
    ],
)
def test_what_is_to_be_read_before_a_cut(begins: str, context: str) -> None:
    assert contexts(CUT, [0, CUT.index(begins)]) == ["", context]


SETTINGS = """``wait``

  The seconds to wait. It is long. Think twice.

  *Default*: 10

Memory errors
  These are rare. Run a test.

  Running another helps.

.. rubric:: Repair

.. code-block:: ini
   :linenos:

   [main]

   wait = 10

It says this:

::

   x = 1

   y = 2
"""


@pytest.mark.parametrize(
    ("begins", "context"),
    [
        ("*Default*", "``wait``\n\n"),
        ("Running", "Memory errors\n\n"),
        (".. rubric", ""),
        ("   wait = 10", ".. code-block:: ini\n   :linenos:\n\n"),
        ("   y = 2", "::\n\n"),
    ],
)
def test_what_goes_on_below_a_term_or_in_code_is_read_with_what_opens_it(
    begins: str, context: str
) -> None:
    assert contexts(SETTINGS, [0, SETTINGS.index(begins)]) == ["", context]


def test_code_is_read_with_the_sentence_before_it() -> None:
    text = "Use the tool.\n\n```sh\nx\n```\n\nOther.\n\n| a | b |\n"
    assert contexts(text, [text.index("```sh"), text.index("| a")]) == ["Use the tool.\n\n", ""]


def test_a_sentence_that_code_has_interrupted_is_read_from_its_beginning() -> None:
    text = "This option:\n\n```\na\n```\n\nis the same as:\n\n```\nb\n```"
    pieces = list(pieces_of(text))
    (context,) = contexts_of(text, pieces, [text.index("is the")])
    assert context == "This option:\n\n```\na\n```\n\n"


def test_code_below_the_second_line_of_an_item_belongs_to_it() -> None:
    text = "#. Pack it and\n   send it::\n\n      pack\n\n      send\n\n#. Wait::\n\n      wait"
    assert [text[piece.start : piece.end] for piece in pieces_of(text)] == [text]


@pytest.mark.parametrize(("end", "count"), [(":", 2), (":**", 2), (".", 5)])
def test_code_at_the_margin_belongs_to_the_item_that_leads_it_in(end: str, count: int) -> None:
    text = f"- Kind\n- So{end}\n```sh\nask\n```\n- Or{end}\n```sh\npack\n```\n\nEnd."
    assert len(list(pieces_of(text))) == count


def test_what_says_since_when_stays_with_the_sentence_before_it_and_the_code_after_it() -> None:
    text = "One may ask:\n\n.. versionadded:: 1.2\n\n.. code-block:: sh\n\n   ask"
    more = "\n\nThe mill is old and it grinds."
    assert decompose(text + more) == [text, more.strip()]
    assert excerpt_at(text + more, 3, 12) == [(0, len(text))]
    assert len(decompose(text.replace(":", ".", 1))) > 1


def test_what_an_interpreter_shows_is_code_up_to_an_empty_line() -> None:
    shown = "  >>> ask(me)\n  ... # Who? Me.\n  1. No"
    text = f"Ask it.\n\n{shown}\n\nIt is so. Or so."
    assert [text[piece.start : piece.end] for piece in pieces_of(text)] == [
        "Ask it.", shown, "It is so.", "Or so.",
    ]  # fmt: skip
    assert contexts_of(text, list(pieces_of(text)), [0, text.index(shown)]) == ["", "Ask it.\n\n"]
    assert [line.kind for line in lines_of("```\n>>> a\n```\nSo.")] == ["code"] * 3 + ["prose"]


def test_rules_of_tildes_are_of_titles_and_terms_open_what_they_name() -> None:
    text = "One\n~~~\n\nIt is.\n\nTwo\n~~~\n\n~~~\ncode\n~~~\n"
    assert [piece.kind for piece in pieces_of(text)] == [
        "heading", "heading", "sentence", "heading", "heading", "block",
    ]  # fmt: skip
    pieces = [(piece.kind, SETTINGS[piece.start : piece.end]) for piece in pieces_of(SETTINGS)]
    assert [text for kind, text in pieces if kind == "term"] == ["``wait``", "Memory errors"]
    assert [text for kind, text in pieces if kind == "heading"] == [".. rubric:: Repair"]


SIMPLE = "====  ====\nName  What\n====  ====\n"


def test_a_simple_table_is_one_block_and_its_rows_are_read_with_their_head() -> None:
    text = f"It is so:\n\n{SIMPLE}a     one\nb     two.  Or so\n====  ====\n\nAfter it."
    table = text[text.index("====") : text.rindex("====") + 4]
    assert [text[piece.start : piece.end] for piece in pieces_of(text)][1:] == [table, "After it."]
    head, row = whole_at(text, text.index("two"))
    assert (text[slice(*head)], text[slice(*row)]) == (SIMPLE.strip(), "b     two.  Or so")
    assert contexts(text, [0, text.index("b     two")]) == ["", SIMPLE]


GRID = "+----+-------+\n| no | what  |\n+====+=======+\n"
COLUMNS = "==  =====\nno  what\n==  =====\n"


@pytest.mark.parametrize(
    ("head", "row", "end"),
    [
        (GRID, "| {0:2} | first |\n|    | more{0} |\n+----+-------+\n", ""),
        (COLUMNS, "{0:2}  first\n    more{0}\n", "==  =====\n"),
    ],
    ids=["grid", "columns"],
)
@pytest.mark.parametrize("word", ["first", "more7"])
def test_a_row_of_several_lines_is_quoted_whole(head: str, row: str, end: str, word: str) -> None:
    rows = [row.format(number) for number in range(40)]
    text = head + "".join(rows) + end
    place = text.index(word, text.index(rows[7]))
    quoted = "\n".join(text[low:high] for low, high in excerpt_at(text, place, 20))
    assert quoted == head + rows[7].partition("\n+")[0].rstrip("\n")
    strips = decompose(text)
    assert len(strips) > 1
    assert [one for one in strips if one.lstrip().startswith(("|    |", "more"))] == []


def test_tables_without_an_end_and_many_options_are_read_once() -> None:
    (table,) = pieces_of("== ==\nx\n" * 20_000)
    assert table.start == 0
    for opens, line in (("====  ====", "a     one"), (".. code::", "   :a: b")):
        text = f"{opens}\n" + f"{line}\n" * 100_000
        starts = range(len(opens) + 1, len(text), 500 * (len(line) + 1))
        assert not any(contexts(text, starts))


def test_a_title_with_a_rule_above_may_be_indented() -> None:
    pieces = list(pieces_of("*****\n Use\n*****\n\nIt is so.\n"))
    assert [piece.kind for piece in pieces] == [*["heading"] * 3, "sentence"]


def test_a_sentence_that_speaks_of_what_follows_leads_it_in() -> None:
    text = "It looks in the following places.\n\n- one\n- two\n\nThe following is so. It is.\n"
    assert [piece.leads_in for piece in pieces_of(text)] == [True, False, False, False]
    first, items = whole_at(text, text.index("places"))
    assert text[first[0] : items[1]] == text[: text.index("\n\nThe")]


def test_three_dots_lead_in_what_follows_at_once() -> None:
    text = "Run it...\n\n```sh\nrun\n```\n\nAnd so...\n\nIt ends."
    assert [piece.leads_in for piece in pieces_of(text)] == [True, False, False, False]


def test_a_line_in_bold_leads_in_the_block_that_it_names() -> None:
    text = "One may ask.\n\n**Usage**\n\n```sh\nask\n```\n\n**Mind** this.\n\n**All**\n\nSo."
    assert [text[piece.start :][:7] for piece in pieces_of(text) if piece.leads_in] == ["**Usage"]


def test_no_excerpt_ends_with_a_term() -> None:
    text = "These are all of them:\n\nErrors\n  They are bad."
    for most, end in ((6, text.index("\n\n")), (9, len(text))):
        assert excerpt_at(text, 3, most) == [(0, end)]


@pytest.mark.parametrize(
    "text",
    [
        "So it does set aside a chunk of\n    Time",
        "On\n  the other hand",
        "|\n  B",
        "add_library(\n  B",
    ],
)
def test_the_rest_of_a_sentence_is_no_term(text: str) -> None:
    (piece,) = pieces_of(text)
    assert piece.kind == "sentence"


def test_fields_are_items() -> None:
    text = ":returns: A\n  or more.\n:raises ValueError: C.\n\nEnd."
    block, _ = pieces_of(text)
    assert block.kind == "block"
    assert [text[low:high][:4] for low, high in block.items] == [":ret", ":rai"]


def test_items_of_a_list_that_is_quoted_are_whole() -> None:
    text = "> Mind:\n> * The mill turns. It is\n>   loud.\n> * The wheel is wet. It turns."
    kinds = [line.kind for line in lines_of(text)]
    assert kinds == ["prose", "item", "prose", "item"]
    (lead, item) = whole_at(text, text.index("loud"))
    assert (text[slice(*lead)], text[slice(*item)]) == (
        "> Mind:",
        "> * The mill turns. It is\n>   loud.",
    )


def test_a_sentence_on_this_or_that_leans_on_the_one_before() -> None:
    leaning = [
        "To change this, ask.",
        "For these reasons it is.",
        "For example, ask.",
        "Thus it is.",
    ]
    standing = ["To ask is free.", "For the reason, ask.", "Examples are here."]
    pieces = list(pieces_of("\n\n".join([*leaning, *standing])))
    assert [piece.leans for piece in pieces] == [True] * len(leaning) + [False] * len(standing)


def test_code_that_is_indented_below_its_lead_in_is_one_block() -> None:
    text = "The form is this:\n\n    [-+]?(\n        0x8f. Or so.\n    )\n\nA list:\n\n- a\n\n    b"
    pieces = [text[piece.start : piece.end] for piece in pieces_of(text)]
    assert pieces[1] == "    [-+]?(\n        0x8f. Or so.\n    )"
    assert pieces[2:] == ["A list:", "- a\n\n    b"]


def test_the_head_of_a_long_table_is_quoted_with_the_rows_that_fit() -> None:
    rows = "".join(f"| {number} | {'many words ' * 5}|\n" for number in range(20))
    text = f"These are the parts:\n\n| number | what |\n|---|---|\n{rows}"
    for place in (3, text.index("what"), text.index("|---")):
        ((start, end),) = excerpt_at(text, place, 20, 60)
        assert text[start:end] == text[: text.index("| 3 |") - 1]
    ((start, end),) = excerpt_at(text, text.index("what"), 5)
    assert text[start:end].endswith(rows.split("\n")[0])


def test_a_question_that_begins_a_paragraph_is_read_with_what_answers_it() -> None:
    text = "Q: Is it so? A: Yes.\n\nMay I go?\n\nOnly by day.\n\n"
    text += "**May I stay?**\nFor a night. Why? So.\n\n# End"
    assert decompose(text) == [
        "Q: Is it so? A: Yes.",
        "May I go?\n\nOnly by day.",
        "**May I stay?**\nFor a night. Why? So.",
        "# End",
    ]


def test_a_heading_of_a_word_is_read_with_the_empty_one_above_it() -> None:
    text = "# Changes\n\n## 3.2\n\n### Added\n\n- a\n\n### Fixed\n\n- b\n\n"
    text += "## 3.1\n\nOld.\n\n### Removed\n\n- c"
    starts = [text.index(begins) for begins in ("# Changes", "### Fixed", "## 3.1", "### Removed")]
    assert contexts(text, starts) == ["", "## 3.2\n\n", "", ""]
