"""The official programs' decompositions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.papers.decomposition import as_split, decompose


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(
    st.lists(
        st.sampled_from(["word", "Dr.", "end.", "Why?", "3.5", "\n\n", "- item"]), max_size=500
    )
)
def test_prose_loses_no_text_either(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for mode in ("sentences", "fixed_num", "selection"):
        assert squeezed("".join(decompose(text, mode))) == squeezed(text)


def test_selection_takes_the_passage_whole() -> None:
    text = " One.\nTwo.  Three. Four.\n"
    assert decompose(text, "selection") == ["One. Two.  Three. Four."]


def test_excerption_follows_the_official_rules() -> None:
    text = (
        "The first sentence has quite some words. Short one. "
        "The second long sentence has also enough words. "
        "The second long sentence has also enough words. "
        "A third long sentence comes after the others? "
        "And a fourth long sentence closes this text"
    )
    first = (
        "The first sentence has quite some wordsShort one The second long sentence has also "
        "enough words A third long sentence comes after the others"
    )
    second = " And a fourth long sentence closes this text"
    assert decompose(text, "excerption") == [first, second]


PIECES = st.sampled_from(
    ["A sentence of more than five words here", "Short one", "Dr", "? ", "?", ". ", ".", " ", "\n",
     "Another sentence of more than five words", "  two  spaces "]
)  # fmt: skip


def official_excerption(passage: str) -> list[str]:
    """Cut as docs/method/paper-and-code.md says that the official mode does."""
    passage = passage.replace("\n", " ").replace("\t", " ")
    entries: list[str] = []
    for question in passage.split("?"):
        for piece in question.split(". "):
            if piece in entries:
                continue
            if entries and len(piece.split()) <= 5:
                entries[-1] = entries[-1] + piece
            else:
                entries.append(piece)
    starts = range(0, len(entries), 3)
    return [" ".join(entries[start : start + 3]) for start in starts]


@given(st.lists(PIECES, max_size=30).map("".join))
def test_excerption_equals_the_official_mode(text: str) -> None:
    wanted = [strip for strip in official_excerption(text) if strip.strip()]
    assert decompose(text, "excerption") == (wanted if text.strip() else [])


@pytest.mark.data
def test_excerption_equals_the_official_mode_on_real_passages(data: Path) -> None:
    with (data / "corpus/wikipedia.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(5000), lines, strict=False)]
    different = [t for t in texts if decompose(t, "excerption") != official_excerption(t)]
    assert (len(texts), different) == (5000, [])


@pytest.mark.parametrize(
    ("words", "lengths"),
    [(3, [3]), (50, [50]), (59, [59]), (60, [50, 10]), (105, [50, 55]), (120, [50, 50, 20])],
)
def test_fixed_windows(words: int, lengths: list[int]) -> None:
    strips = decompose(" ".join(map(str, range(words))), "fixed_num")
    assert [len(strip.split()) for strip in strips] == lengths


@pytest.mark.parametrize(
    ("words", "lengths"), [(3, [3]), (49, [49]), (57, [57]), (58, [49, 9]), (100, [49, 51])]
)
def test_fixed_windows_of_the_official_reader_count_the_spaces_around(
    words: int, lengths: list[int]
) -> None:
    """The space before a passage takes the place of a word, and so does the one after it."""
    text = as_split(" ".join(map(str, range(words))), 1, 3)
    strips = decompose(text, "fixed_num_spaced")
    assert [len(strip.split()) for strip in strips] == lengths
    assert " ".join(strips) == text


def test_the_official_reader_strips_a_line_and_not_its_passages() -> None:
    assert [as_split("a", place, 3) for place in range(3)] == ["a ", " a ", " a"]
    assert as_split("a", 0, 1) == "a"


@pytest.mark.parametrize(
    "mode", ["sentences", "selection", "excerption", "fixed_num", "fixed_num_spaced"]
)
def test_white_space_has_no_strips(mode: str) -> None:
    assert decompose(" \n\t ", mode) == []  # type: ignore[arg-type]
