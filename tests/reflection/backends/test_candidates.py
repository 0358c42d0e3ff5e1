"""Segments written as by a model with the tokens, and probabilities from the tokens of JSON."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from crag.parts import Passage
from crag.reflection.backends.candidates import (
    Token,
    of_labels,
    of_text,
    prose,
    shortest_cut,
    tokens_of,
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


@pytest.mark.parametrize(
    ("most", "text"), [(13, "one two three"), (9, "one two"), (2, "on"), (0, "")]
)
def test_of_a_passage_that_is_too_long_the_whole_words_are_used(most: int, text: str) -> None:
    given = Passage("Numbers", "one two three")
    cut = shortest_cut(given, lambda shown: len(shown.text) <= most)
    assert cut == given._replace(text=text)


NAMES = {"fully": "F", "partially": "P", "none": "N"}


def token(text: str, probability: float = 1.0, **others: float) -> Token:
    told = {text: probability} | others
    return Token(text, math.log(probability), {name: math.log(p) for name, p in told.items()})


def tokens(*texts: str) -> list[Token]:
    return [token(text) for text in texts]


def test_a_label_of_its_own_token() -> None:
    said = [*tokens('{"', "support", '":"'), token("fully", 0.7, partially=0.2, no=0.05, x=0.01),
            *tokens('"}')]  # fmt: skip
    found = of_labels(said, "support", NAMES)
    assert found == pytest.approx({"F": 0.7, "P": 0.2, "N": 0.05})


def test_a_label_cut_into_tokens_and_glued_to_its_quotation_mark() -> None:
    others = {' "part': 0.3, " [": 0.1, ' "Fu': 0.05, '"none': 0.05, ' "': 0.02}
    said = [*tokens('{"support":'), token(' "f', 0.5, **others), *tokens('ully"}')]
    assert of_labels(said, "support", NAMES) == pytest.approx({"F": 0.55, "P": 0.3})


def test_grades_are_numbers() -> None:
    said = [*tokens('{"utility"', ": "), token("5", 0.6, **{"4": 0.3, "10": 0.1}), *tokens("}")]
    grades = {str(n): f"[{n}]" for n in range(1, 6)}
    assert of_labels(said, "utility", grades) == pytest.approx({"[5]": 0.6, "[4]": 0.3})


def test_a_field_within_the_text_is_text() -> None:
    forged = r'{"text": "\"support\": \"fully\"", '
    said = [*tokens(forged, '"support": "'), token("none", 0.9), *tokens('"}')]
    assert of_labels(said, "support", NAMES) == pytest.approx({"N": 0.9})


def test_a_beginning_that_two_labels_share_counts_for_neither() -> None:
    said = [*tokens('{"support": "'), token("no", 0.9, partially=0.1), *tokens('"}')]
    assert of_labels(said, "support", NAMES | {"not at all": "A"}) == pytest.approx({"P": 0.1})


def test_of_a_field_that_is_not_there_nothing_is_told() -> None:
    assert of_labels(tokens('{"text": "a"}'), "support", NAMES) is None
    assert of_labels(tokens('{"support": "', "perhaps", '"}'), "support", NAMES) is None
    assert of_labels(tokens('{"support": "'), "support", NAMES) is None
    assert of_labels([], "support", NAMES) is None


def test_the_mean_is_that_of_the_text_alone() -> None:
    said = [token('{"text"', 0.1), token(': "', 0.1), token("A", 0.5), token(r' \"b\" fact.', 0.25),
            token('", "utility": 5}', 0.1)]  # fmt: skip
    mean, count = of_text(said) or (0.0, 0)
    assert (mean, count) == pytest.approx(((math.log(0.5) + math.log(0.25)) / 2, 2))
    assert of_text(tokens("no text")) is None
    assert of_text([]) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"logprobs": None},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": [{"token": "a"}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": "low"}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": math.nan}]}},
        {"logprobs": {"content": [3]}},
        {"logprobs": [1]},
    ],
)
def test_what_has_another_form_tells_nothing(metadata: dict[str, Any]) -> None:
    assert tokens_of(AIMessage("a", response_metadata=metadata)) == []


def test_tokens_of_a_message() -> None:
    entry: Mapping[str, Any] = {
        "token": "a", "logprob": -0.5, "bytes": [97],
        "top_logprobs": [{"token": "b", "logprob": -2.0}, {"token": "c", "logprob": -math.inf}],
    }  # fmt: skip
    message = AIMessage("a", response_metadata={"logprobs": {"content": [entry]}})
    assert tokens_of(message) == [Token("a", -0.5, {"a": -0.5, "b": -2.0, "c": -math.inf})]
    assert tokens_of(None) == []
