"""Citations: marks are found and changed, what refers to nothing goes, passages become strips."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crag.serve
from crag.answering.citations import (
    attributed,
    marks_in,
    numbered_passages,
    validate,
    why_empty,
    with_number,
)
from crag.state import Citation, OfferedPassage, Source, Strip
from crag.text.marks import PATTERN, SINGLE, Mark, marks_of, with_numbers, without_marks

SOURCE = Source(id="1", title="", url="", position="")
AVAILABLE = [Citation(number=n, text=f"strip {n}", source=SOURCE) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("said", "answer", "removed"),
    [
        ("A [2]. B [1][2]. C[3].", "A [2]. B [1][2]. C[3].", []),
        ("A fact [7]. Another [1, 9].", "A fact. Another [1].", [7, 9]),
        ("Use `a[9]` [1].", "Use `a[9]` [1].", []),
        ("Use `[Passage 2]` [1].", "Use `[Passage 2]` [1].", []),
        ("[Passage 2] It is so.", "[2] It is so.", []),
        ("It is so [passages 1, 3].", "It is so [1, 3].", []),
        ("It is so [Source 9].", "It is so.", [9]),
        ("See [passage two] and [Passage].", "See [passage two] and [Passage].", []),
        *((f"So it is{mark}.", "So it is [1].", []) for mark in (
            " [doc 1]", " [doc1]", " (Source: 1)", " [Quelle 1]", " [1: Notes]", " [1 - Notes]",
            " [[1]](#1)", r" \[1\]", " [Document #1]", " [Passage 1, Passage 1]", " (1, 1)",
            " [S1]", " {1}", " (1)", " (Passage 1)", " [cite: 1]", " (siehe Quelle 1)",
            " [vgl. Dokument 1]", " [Note #1]")),
        *((f"So it is{mark}.", "So it is[1].", []) for mark in (
            "【来源1】", "【1:0†source】", "[１]", "［１］", "[^1^]", "^[1]^", "$^{1}$", "⁽¹⁾",
            "【1】", "【1†L1-L4】", "[^1]", "<sup>1</sup>", "[citation:1]", "[来源1]",
            "[出典1]", '<sup><a href="#1">1</a></sup>', '<cite id="1"/>', "<ref>1</ref>")),
        ("It rained¹, or so it is [1-2].", "It rained[1], or so it is [1, 2].", []),
        ("[cite_start]So it is[cite: 1]. <co>So</co: 2>", "So it is[1]. So[2]", []),
        *((text, text, []) for text in (
            "In 20 m² (2024) [1].", "As [Figure 1] and [RFC 2119] say [1].", "In [2019-2024].")),
    ],
)  # fmt: skip
def test_citations_to_nothing_are_removed_and_others_are_numbers_outside_code(
    said: str, answer: str, removed: list[int]
) -> None:
    result = validate(said, AVAILABLE)
    assert (result.answer, result.removed) == (answer, removed)


LINKED = [
    Citation(number=1, text="See https://docs.example.org/a, it says.", source=SOURCE),
    Citation(number=2, text="x", source={**SOURCE, "url": "https://example.org/page"}),
]
EVIL = "https://evil.example/?q=secret"


@pytest.mark.parametrize(
    ("said", "answer", "links"),
    [
        ("See https://docs.example.org/a. [1]", "See https://docs.example.org/a. [1]", 0),
        ("[the page](https://example.org/page) [2]", "[the page](https://example.org/page) [2]", 0),
        (f"Go to {EVIL} [1].", "Go to (link removed) [1].", 1),
        (f"[Click]({EVIL}) [1]", "Click [1]", 1),
        (f"![chart]({EVIL}) [1]", "chart [1]", 1),
        ("![chart](https://example.org/page) [2]", "chart [2]", 1),
        (f"It was so [1]({EVIL}).", "It was so [1].", 1),
        ("[Run](javascript:alert(1)) [1]", "Run [1]", 1),
        (f"![a]({EVIL})![b](<{EVIL}> 'title') [1]", "ab [1]", 2),
        (f"`curl {EVIL}` [1]", f"`curl {EVIL}` [1]", 0),
        (f"[one]({EVIL}[two]({EVIL}) [1]", r"[one]\((link removed) [1]", 2),
        ("https://docs.example.org/a?leak=1 [1]", "(link removed) [1]", 1),
    ],
)
def test_a_link_stays_only_if_a_strip_holds_it(said: str, answer: str, links: int) -> None:
    result = validate(said, LINKED)
    assert result.answer == answer
    assert len(result.links) == links


@given(st.text(alphabet="a [],.0123456789`", max_size=80))
def test_what_is_left_cites_only_what_there_is(answer: str) -> None:
    left = validate(answer, AVAILABLE).answer
    assert {number for mark in marks_in(left) for number in mark.numbers} <= {1, 2, 3}


def strip(text: str) -> Strip:
    source = Source(id=text, title="T", url=f"{text}.md", position="")
    return Strip(text=text, kind="document", source=source, score=None, kept=True, reason="")


def passage(*strips: str) -> OfferedPassage:
    return OfferedPassage(
        title="T", text="\n".join(strips), label="correct", grade="", strips=[*map(strip, strips)]
    )


PASSAGES = [passage("Ada wrote it.", "Babbage built it."), passage("It was in 1843.")]


def test_each_number_cites_the_nearest_strip() -> None:
    answer, citations = attributed("It was BABBAGE [1]. In 1843 [2]. By Ada [1].", PASSAGES)
    assert answer == "It was BABBAGE [1]. In 1843 [2]. By Ada [3]."
    assert [entry["text"] for entry in citations] == [
        "Babbage built it.", "It was in 1843.", "Ada wrote it.",
    ]  # fmt: skip
    assert [entry["number"] for entry in citations] == [1, 2, 3]
    assert citations[0]["source"]["url"] == "Babbage built it..md"


def test_a_strip_that_is_cited_again_keeps_its_number_and_of_equals_the_first_is_cited() -> None:
    answer, citations = attributed("Ada [1]. In 1843 [2]. Nobody [1].", PASSAGES)
    assert answer == "Ada [1]. In 1843 [2]. Nobody [1]."
    assert [one["text"] for one in citations] == ["Ada wrote it.", "It was in 1843."]


@pytest.mark.parametrize("mark", ["[0]", "[3]", "[99]"])
def test_a_number_without_passage_goes(mark: str) -> None:
    assert attributed(f"It {mark} was Ada [1].", PASSAGES)[0] == "It  was Ada [1]."
    assert attributed(f"Ada {mark}", []) == ("Ada ", [])


def test_equal_texts_of_two_sources_are_two_citations() -> None:
    other = passage("Ada wrote it.")
    other["strips"][0]["source"]["url"] = "other.md"
    answer, citations = attributed("Ada [1]. Ada [2].", [passage("Ada wrote it."), other])
    assert answer == "Ada [1]. Ada [2]."
    assert [entry["source"]["url"] for entry in citations] == ["Ada wrote it..md", "other.md"]


@pytest.mark.parametrize("without", [{}, {"strips": []}])
def test_a_passage_without_strips_is_its_own(without: Any) -> None:
    alone: Any = {"title": "Mine", "text": "Ada did."} | without
    _, (cited,) = attributed("Ada [1].", [alone])
    assert (cited["text"], cited["source"]["title"], cited["source"]["url"]) == (
        "Ada did.", "Mine", "",
    )  # fmt: skip
    assert numbered_passages([alone]) == [cited]


def test_a_number_is_inserted_before_the_end_of_a_sentence() -> None:
    assert with_number("It was Ada.", 1) == "It was Ada [1]."
    assert with_number("true", 1) == "true [1]"
    assert with_number("Nobody.", None) == "Nobody."


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        *((one, "wrote no words") for one in (
            "[4]", "[1][2].", "Passage 4", '<passage number="4">', "(2)", "…", "[1] and [2]",
            "- [1]\n- [2]", "Source: [3]", "**[1]**", '[Passage number "7"]')),
        ("Use this command: [4]", "announced an answer and gave none"),
        *((one, "") for one in (
            "8000", "Yes [1].", "Port 80 [1]", "A", "`|` [1]", "四", "Use this: `make` [4]")),
    ],
)  # fmt: skip
def test_an_answer_that_says_nothing_is_told_from_a_short_one(answer: str, wrong: str) -> None:
    assert why_empty(answer) == wrong


def test_marks_are_found_with_the_white_space_before_them() -> None:
    text = "A  [1, 20;3] b[12345][4]"
    assert list(marks_of(text)) == [Mark(1, 3, 12, [1, 20, 3]), Mark(21, 21, 24, [4])]


@pytest.mark.parametrize(
    ("text", "numbers", "changed"),
    [
        ("A [1;2], b [9].", lambda number: [number + 1], "A [2, 3], b [10]."),
        ("A [1, 9], b \n[9]. [2]", lambda number: [number] * (number < 9), "A [1], b. [2]"),
    ],
)
def test_numbers_are_changed_and_a_mark_without_numbers_goes(
    text: str, numbers: Callable[[int], list[int]], changed: str
) -> None:
    assert with_numbers(text, lambda old: [new for one in old for new in numbers(one)]) == changed
    assert without_marks(text) in {"A, b.", "A, b"}


def test_the_page_knows_the_same_marks() -> None:
    code = (Path(crag.serve.__file__).parent / "static" / "citations.js").read_text("utf-8")
    assert f"\nexport const MARK = /({PATTERN})/;\n" in code
    assert f"((?:{SINGLE})+)" in code  # After a quotation.
    written = re.search(
        r'asMark = \(\.\.\.numbers\) => `(.+)\$\{numbers\.join\(", "\)\}(.+)`;', code
    )
    assert written is not None
    assert written.groups() == ("[", "]")
