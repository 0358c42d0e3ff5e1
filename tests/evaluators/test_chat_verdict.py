"""Yes or no, read from what a chat model replied."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import EvaluatorError
from crag.evaluators.chat import PromptStyle, verdict

STYLES: tuple[PromptStyle, ...] = ("direct", "chain_of_thought", "few_shot")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("yes", True),
        ("No", False),
        ("**Yes.**", True),
        ("_no_", False),
        ("Answer: no", False),
        ("**Answer**: Yes", True),
        ("The answer is 'no'.", False),
        ("<answer>YES</answer>", True),
        ('{"answer": "no"}', False),
        ("No, the passage does not say yes to that.", False),
        ("Yes or no? Yes.", True),
        ("No mention of it.", False),
        ("It does, so: yes", True),
        ("<think>Perhaps no. Yes? No.</think>\nYes", True),
        ("So it is no.</think>yes", True),
    ],
)
def test_a_verdict_is_read_in_many_forms(reply: str, said: bool) -> None:
    assert verdict(reply) is said
    assert verdict(reply, "few_shot") is said


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "maybe",
        "I cannot say yes or no.",
        "It says no; then again, yes.",
        "<think>No, it",
        "nope",
    ],
)
def test_a_reply_without_one_verdict_is_malformed(reply: str) -> None:
    with pytest.raises(EvaluatorError, match="neither yes nor no"):
        verdict(reply)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Does it say so? No. But the second sentence does.\n\n**Yes**", True),
        ("Yes, it is about him. Yet there is no date.\nAnswer: no.", False),
        ("There is no doubt: No. 5 names it. Yes. It makes no other claim.", True),
    ],
)
def test_a_chain_of_thought_ends_in_its_verdict(reply: str, said: bool) -> None:
    assert verdict(reply, "chain_of_thought") is said


def test_a_chain_of_thought_cut_short_has_no_verdict() -> None:
    with pytest.raises(EvaluatorError, match="neither"):
        verdict("The passage makes no mention of a city, no-one is", "chain_of_thought")


NEUTRAL = st.text(alphabet=" \n.,:;*_`!?()\"'", max_size=12)


@given(NEUTRAL, st.sampled_from(["yes", "Yes", "YES", "no", "No", "NO"]), NEUTRAL)
def test_marks_around_a_verdict_do_not_matter(before: str, word: str, after: str) -> None:
    for style in STYLES:
        assert verdict(f"{before}{word}{after}", style) is (word.lower() == "yes")


@given(st.text(max_size=60))
def test_a_reply_without_the_words_is_never_a_verdict(reply: str) -> None:
    if re.search("y.*s|n.*o", reply.casefold(), re.DOTALL):
        return
    for style in STYLES:
        with pytest.raises(EvaluatorError):
            verdict(reply, style)


@given(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=6), st.randoms())
def test_the_last_word_of_a_chain_of_thought_decides(words: list[str], chance: Any) -> None:
    reply = "".join(f"{word}{chance.choice(['. ', ', ', '; but '])}" for word in words)
    assert verdict(reply, "chain_of_thought") is (words[-1] == "yes")
