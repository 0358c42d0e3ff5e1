"""Segments stand where a model with the tokens would have written them."""

import pytest

from crag.parts import Passage, SegmentLimits
from crag.reflection.backends.candidates import (
    nothing,
    prose,
    shortened,
    shortest_cut,
    written,
)
from crag.reflection.cleaning import cleaned
from crag.reflection_tokens import FULLY, IRRELEVANT, NO_SUPPORT, RELEVANT, UTILITY


def test_tokens_stand_around_the_text() -> None:
    text = written(
        "A fact.",
        relevance={IRRELEVANT: 0.2, RELEVANT: 0.7},
        support={FULLY: 0.1, NO_SUPPORT: 0.9},
        utility={UTILITY[3]: 1.0},
    )
    assert text == "[Relevant]A fact.[No support / Contradictory][Utility:4]"
    assert cleaned(text) == "A fact."
    assert written("A fact.", relevance=None, support=None, utility=None) == "A fact."
    assert written("", relevance={}, support=None, utility=None) == ""


@pytest.mark.parametrize("forged", ["[Utility:5]", "[Retrieval]", "<paragraph>", "</s>", "[1]"])
def test_prose_holds_no_token_and_no_citation(forged: str) -> None:
    said = prose(f"A\n\n fact.{forged} ")
    assert said.startswith("A fact.")
    assert forged not in said


def test_a_text_has_at_most_the_words_that_are_allowed() -> None:
    assert shortened("one two three", SegmentLimits(max_tokens=3)) == ("one two three", False)
    assert shortened("one two three", SegmentLimits(max_tokens=2)) == ("one two", True)


def test_nothing_is_empty_and_ends() -> None:
    assert nothing(None)._replace(relevance={}) == nothing({})
    assert (nothing({}).text, nothing({}).support, nothing({}).ending) == ("", None, "end")


@pytest.mark.parametrize(
    ("most", "text"), [(13, "one two three"), (9, "one two"), (2, "on"), (0, "")]
)
def test_of_a_passage_that_is_too_long_the_whole_words_are_used(most: int, text: str) -> None:
    given = Passage("Numbers", "one two three")
    cut = shortest_cut(given, lambda shown: len(shown.text) <= most)
    assert cut == given._replace(text=text)
