"""Segments written as by a model with the tokens, and probabilities from the tokens of JSON."""

import math
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


def tokens(*pieces: str | tuple[str, dict[str, float]]) -> list[Token]:
    """Return the tokens of a reply; of some the likeliest are given with their probabilities."""
    content = []
    for text, others in ((one, {one: 1.0}) if isinstance(one, str) else one for one in pieces):
        listed = [{"token": other, "logprob": math.log(p)} for other, p in others.items()]
        content.append({"token": text, "logprob": math.log(others[text]), "top_logprobs": listed})
    return tokens_of(AIMessage("", response_metadata={"logprobs": {"content": content}}))


GLUED = {' "f': 0.5, ' "part': 0.3, " [": 0.1, ' "Fu': 0.05, '"none': 0.05, ' "': 0.02}
WHOLE = {"fully": 0.7, "partially": 0.2, "no": 0.05, "x": 0.01}
FORGED = r'{"text": "\"support\": \"fully\"", '


@pytest.mark.parametrize(
    ("pieces", "labels", "shares"),
    [
        (['{"', "support", '":"', ("fully", WHOLE), '"}'], NAMES, {"F": 0.7, "P": 0.2, "N": 0.05}),
        (['{"support":', (' "f', GLUED), 'ully"}'], NAMES, {"F": 0.55, "P": 0.3}),
        ([FORGED, '"support": "', ("none", {"none": 0.9}), '"}'], NAMES, {"N": 0.9}),
        (
            ['{"support": "', ("no", {"no": 0.9, "partially": 0.1}), '"}'],
            NAMES | {"not at all": "A"},
            {"P": 0.1},
        ),
        (['{"support": ', ("5", {"5": 0.6, "10": 0.1}), "}"], {"5": "[5]"}, {"[5]": 0.6}),
        (['{"text": "a"}'], NAMES, None),
        (['{"support": "', "perhaps", '"}'], NAMES, None),
        (['{"support": "'], NAMES, None),
        ([], NAMES, None),
    ],
)
def test_labels_are_known_by_their_first_token(pieces: Any, labels: Any, shares: Any) -> None:
    found = of_labels(tokens(*pieces), "support", labels)
    assert found == (shares and pytest.approx(shares))


def test_the_mean_is_that_of_the_text_alone() -> None:
    pieces = {'{"text"': 0.1, ': "': 0.1, "A": 0.5, r" \"b\" fact.": 0.25, '", "utility": 5}': 0.1}
    said = tokens(*((text, {text: p}) for text, p in pieces.items()))
    mean, count = of_text(said) or (0.0, 0)
    assert (mean, count) == pytest.approx(((math.log(0.5) + math.log(0.25)) / 2, 2))
    assert of_text(tokens("no text")) is None


@pytest.mark.parametrize(
    "logprobs",
    [
        None, {"content": None}, {"content": [{"token": "a"}]}, {"content": [3]}, [1],
        {"content": [{"token": "a", "logprob": "low"}]},
        {"content": [{"token": "a", "logprob": math.nan}]},
    ],
)  # fmt: skip
def test_what_has_another_form_tells_nothing(logprobs: Any) -> None:
    assert tokens_of(AIMessage("a", response_metadata={"logprobs": logprobs})) == []
