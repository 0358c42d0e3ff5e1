"""From the passages of an answer to the strips they were made of."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.answering.attribution import attributed, cited_whole, numbered_passages
from crag.state import OfferedPassage, Source, Strip


def strip(text: str) -> Strip:
    source = Source(id=text, title="T", url=f"{text}.md", position="")
    return Strip(text=text, source=source, score=None, kept=True, reason="")


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


def test_a_strip_that_is_cited_again_keeps_its_number() -> None:
    answer, citations = attributed("Ada [1]. In 1843 [2]. Ada wrote [1].", PASSAGES)
    assert answer == "Ada [1]. In 1843 [2]. Ada wrote [1]."
    assert len(citations) == 2


def test_of_equals_the_first_is_cited() -> None:
    assert attributed("Nobody [1].", PASSAGES)[1][0]["text"] == "Ada wrote it."


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


def test_whole_passages_are_numbered_in_order() -> None:
    found = numbered_passages(PASSAGES)
    assert [(entry["number"], entry["text"]) for entry in found] == [
        (1, "Ada wrote it.\nBabbage built it."),
        (2, "It was in 1843."),
    ]


def test_a_whole_answer_cites_before_its_end() -> None:
    assert cited_whole("It was Ada.") == "It was Ada [1]."
    assert cited_whole("true") == "true [1]"


WORDS = st.sampled_from(["Ada", "Babbage", "1843", "built", "."])


@given(st.lists(st.one_of(WORDS, st.integers(0, 5).map(lambda n: f"[{n}]"))))
def test_every_number_has_its_citation_and_none_is_left_over(pieces: list[str]) -> None:
    answer, citations = attributed(" ".join(pieces), PASSAGES)
    marks = [int(number) for number in re.findall(r"\[(\d+)\]", answer)]
    assert len(marks) == sum(piece in {"[1]", "[2]"} for piece in pieces)
    assert list(dict.fromkeys(marks)) == [entry["number"] for entry in citations]
    assert [e["number"] for e in citations] == list(range(1, len(citations) + 1))
    words = [piece for piece in pieces if not piece.startswith("[")]
    assert re.sub(r"\[\d+\]", "", answer).split() == words
