"""The official programs' decompositions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.papers.decomposition import decompose

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
    "mode", ["sentences", "selection", "excerption", "fixed_num", "fixed_num_spaced"]
)
def test_white_space_has_no_strips(mode: str) -> None:
    assert decompose(" \n\t ", mode) == []  # type: ignore[arg-type]
