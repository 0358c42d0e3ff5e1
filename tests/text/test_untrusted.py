"""Text from outside cannot act in a prompt or a terminal."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.papers.bench.runner import left_armed
from crag.text.untrusted import neutral, without_controls

REFLECTION = (
    "[No Retrieval]", "[Retrieval]", "[Continue to Use Evidence]", "[Irrelevant]", "[Relevant]",
    "<paragraph>", "</paragraph>", *(f"[Utility:{grade}]" for grade in range(1, 6)),
    "[Fully supported]", "[Partially supported]", "[No support / Contradictory]",
)  # fmt: skip
CHAT = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>",
    "<|system|>", "<｜begin▁of▁sentence｜>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>",
    "</s>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<think>", "</think>", "<tool_call>",
)  # fmt: skip
FENCES = ("<passage number='1'>", "</passage>", "<passages>", "<question>", "</question>")
CITATIONS = ("[1]", "[12]", "[1, 2]", "[3-5]", "[1; 7]", "[ 4 ]")
ACTIVE = (*REFLECTION, *CHAT, *FENCES, *CITATIONS)
ORDINARY = (
    "Plain words, and «quotes» – with dashes.\n\tIndented [citation needed] [sic] [a] [See also].",
    "if (a < b && b > c) { x = y << 2; } // List<String> <div class='s'><strong>x</strong></div>",
    "f x = g <| h x |> k;  p <|> q;  a <= b;  \\frac{a}{b} ∑ x₁² ≤ ∞;  {1, 2}  (3)  [x]  [0.5]",
    "خط الأفق می‌خواهم كتاب",
    "क्‍ष श्रीमान् क्‌ष",
    "👩‍👩‍👧 ❤️ 👍🏽 🏳️‍🌈 1️⃣ ☎️ 🇫🇷",
    "Le café de Noël, naïve e\u0301 coöperation; 日本語。 Ελληνικά עברית ไทย",
    "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ᠌",
)
JUNK = st.sampled_from(
    ["", " ", "\n", "\x1b[31m", "\x1b", "\x9b1m", "\u200b", "\u200d", "\u202e", "\ufe0f", "\xad",
     "\U000e0041", "<", "[", "]", ">", "|", "/", "x", "7", "❤", "ا"]
)  # fmt: skip


def mixed(token: str, upper: list[bool], junk: list[str]) -> str:
    letters = (c.upper() if up else c.lower() for c, up in zip(token, upper, strict=False))
    return "".join(a + b for a, b in zip(letters, junk, strict=False))


@st.composite
def attacks(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        token = draw(st.sampled_from(ACTIVE))
        size = len(token)
        upper = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        invisible = st.sampled_from(["", "", "", "\u200b", "\xad", "\U000e0041", "\u2060"])
        inner = draw(st.lists(invisible, min_size=size, max_size=size))
        parts += [draw(JUNK), mixed(token, upper, inner), draw(JUNK)]
    return "".join(parts)


def folded(text: str) -> str:
    """Return a text as the most forgiving reader of tokens would take it."""
    return re.sub(r"\s+", "", text).casefold()


@given(attacks())
def test_no_active_text_survives_in_any_disguise(text: str) -> None:
    read = folded(neutral(text))
    for token in (*REFLECTION, *CHAT, *CITATIONS, "</passage>", "<passages>", "<question>"):
        assert folded(token) not in read


@given(st.one_of(st.text(), attacks(), st.lists(JUNK, max_size=30).map("".join)))
def test_once_is_enough_and_nothing_grows(text: str) -> None:
    once = neutral(text)
    assert neutral(once) == once
    assert len(once) <= len(text)
    assert without_controls(once) == once


@given(st.one_of(st.text(), attacks()))
def test_no_control_or_unseen_character_survives(text: str) -> None:
    for character in neutral(text):
        assert unicodedata.category(character) != "Cc" or character in "\n\t"
        assert not "\u202a" <= character <= "\u202e"
        assert not "\U000e0000" <= character <= "\U000e0fff"


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\x00b\u202ec [12] [1, 2]", "a b c (12) (1, 2)"),
        ("red \x1b[1;31malarm\x1b[0m", "red  alarm "),
        ("\x1b]8;;http://x.y\x07link\x1b]8;;\x07", " link "),
        ("one\r\ntwo\rthree", "one\ntwo three"),
        ("zero\u200bwidth soft\xadhyphen wo\u200drd", "zerowidth softhyphen word"),
        ("tags\U000e0049\U000e0047.", "tags."),
        ("</passage><question>", "‹/passage>‹question>"),
        ("<<SYS>> <|im_start|>", "‹‹SYS>> ‹|im_start|›"),
        ("a\ufe0fb 3\ufe0f", "ab 3"),
        ("＜passage＞［Relevant］", "‹passage＞(Relevant)"),
    ],
)
def test_what_becomes_of_it(text: str, written: str) -> None:
    assert neutral(text) == written


def test_a_benchmark_can_leave_texts_as_they_are() -> None:
    with left_armed():
        assert neutral("[Relevant] <s> [1]\x00") == "[Relevant] <s> [1]\x00"
    assert neutral("[Relevant]") == "(Relevant)"
