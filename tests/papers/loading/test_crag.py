import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.errors import DataError
from crag.papers.loading import load_examples
from crag.papers.loading.alignment import Alignment, align
from tests.papers.conftest import PASSAGES, QUESTIONS

Folder = Callable[..., Path]


def fitted(found: Alignment, lines: list[str]) -> list[str]:
    return ["" if place is None else lines[place] for place in found.places]


def test_a_sound_folder_needs_no_repair(crag_folder: Folder) -> None:
    loaded = load_examples(crag_folder(), "popqa")
    assert [example.question for example in loaded.examples] == QUESTIONS
    assert [example.id for example in loaded.examples][:2] == ["4000", "4001"]
    assert [one.knowledge["internal"] for one in loaded.examples] == PASSAGES
    first = loaded.examples[0].knowledge
    assert first["external"] == "Ada Lovelace: Ada Lovelace is known as a mathematician."
    assert first["combined"] == f"Knowledge1: {PASSAGES[0]} [sep] Knowledge2: {first['external']}"
    assert (loaded.refused, loaded.notes) == ([], [])


def test_knowledge_shifted_by_one_line_as_published_for_arc_is_moved(crag_folder: Folder) -> None:
    folder = crag_folder()
    lines = ["", *(f"#{passage}".replace(" was", "\rwas", 1) for passage in PASSAGES)]
    (folder / "ref" / "incorrect").write_bytes("\n".join(lines).encode())
    loaded = load_examples(folder, "popqa")
    assert [one.knowledge["external"] for one in loaded.examples] == PASSAGES
    assert "popqa: incorrect: 8 carriage returns within lines are read as spaces" in loaded.notes
    assert any(note.startswith("popqa: incorrect: moved by +1 line") for note in loaded.notes)


def test_both_texts_of_a_question_are_joined_anew(crag_folder: Folder) -> None:
    """The published file of ARC joins each question with the web text of the one before."""
    loaded = load_examples(
        crag_folder(ambiguous=["Knowledge1: a [sep] Knowledge2: b"] * 8), "popqa"
    )
    wanted = (
        f"Knowledge1: {PASSAGES[3]} [sep] Knowledge2: "
        "Dominick Bellizzi: Dominick Bellizzi is known as a jockey."
    )
    assert loaded.examples[3].knowledge["combined"] == wanted


def test_missing_marks_and_empty_lines_as_published_for_pubhealth_are_named(
    crag_folder: Folder,
) -> None:
    lines = [f"#{passage}" for passage in PASSAGES]
    lines[2] = PASSAGES[2][6:]
    lines[5] = ""
    lines[6] = "#"
    loaded = load_examples(crag_folder(incorrect=lines), "popqa")
    assert loaded.examples[2].knowledge["external"] == PASSAGES[2][6:]
    assert "external" not in loaded.examples[5].knowledge
    told = "popqa: incorrect: without the mark '#', so the text may begin in the middle: 1 (line 3)"
    assert told in loaded.notes
    assert "popqa: incorrect: no knowledge for the question: 2 (line 6, 7)" in loaded.notes


def test_knowledge_of_another_task_stops_the_run(crag_folder: Folder) -> None:
    other = [f"#Photosynthesis step {number} needs light and water" for number in range(8)]
    with pytest.raises(DataError, match=r"correct: its 8 lines do not belong to the 8 questions"):
        load_examples(crag_folder(correct=other), "popqa")


def test_a_range_of_lines_of_neighbours_is_moved_and_named(crag_folder: Folder) -> None:
    """As published for 55 questions of PopQA: a line lost, a later one doubled."""
    marked = [f"#{one}" for one in PASSAGES]
    lines = [*marked[:2], *marked[3:6], *marked[5:]]
    loaded = load_examples(crag_folder(correct=lines), "popqa")
    texts = [one.knowledge.get("internal", "") for one in loaded.examples]
    assert texts == [*PASSAGES[:2], "", *PASSAGES[3:]]
    moved = "popqa: correct: questions 4 to 5 had lines of their neighbours: moved by -1 line"
    assert moved in loaded.notes
    assert "popqa: correct: no knowledge for the question: 1 (line 3)" in loaded.notes


def test_the_evaluation_file_beside_gives_answers_ids_and_passages(
    crag_folder: Folder, popqa_rows: list[dict[str, Any]]
) -> None:
    folder = crag_folder()
    rows = [row for row in reversed(popqa_rows) if row["id"] != 4004]
    (folder / "eval.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    loaded = load_examples(folder, "popqa")
    assert [one.id for one in loaded.examples[:5]] == ["4000", "4001", "4002", "4003", "4005"]
    assert loaded.examples[0].answers == (("mathematician", "mathematicians"),)
    assert loaded.examples[0].documents[0].metadata["title"] == "Ada Lovelace"
    assert "internal" in loaded.examples[0].knowledge
    assert [refused.reason for refused in loaded.refused] == [
        "the evaluation file has no such question"
    ]


SYLLABLES = ["ba", "de", "ki", "lo", "mu", "na", "po", "ri", "su", "te", "vo", "za"]
COMMON = ["is", "known", "for", "work", "in", "many", "places"]


@st.composite
def corpora(draw: st.DrawFn, least: int = 6, most: int = 60) -> tuple[list[str], list[str]]:
    """Draw questions about made-up names, and a text about each of them in the same order."""
    size = draw(st.integers(least, most))
    generator = random.Random(draw(st.integers(0, 10**6)))  # noqa: S311 - no secret
    names: list[str] = []
    while len(names) < size:
        name = "".join(generator.choices(SYLLABLES, k=4)).title()
        if name not in names:
            names.append(name)
    texts = [f"{name} {' '.join(generator.choices(COMMON, k=6))}" for name in names]
    return [f"What is {name} known for?" for name in names], texts


@given(corpora(), st.sampled_from([-1, 0, 1]))
@settings(deadline=None)
def test_any_shift_by_a_line_is_found(corpus: tuple[list[str], list[str]], shift: int) -> None:
    questions, texts = corpus
    lines = {-1: texts[1:], 0: texts, 1: ["", *texts]}[shift]
    found = align(questions, lines)
    assert found.shift == shift
    moved = fitted(found, lines)
    assert moved[max(0, -shift) :] == texts[max(0, -shift) :]
    assert len(moved) == len(questions)


@given(corpora(least=20), st.floats(0, 1), st.booleans())
@settings(deadline=None)
def test_a_line_that_is_lost_or_doubled_within_the_file_is_found(
    corpus: tuple[list[str], list[str]], part: float, doubled: bool
) -> None:
    questions, texts = corpus
    place = 3 + round(part * (len(texts) - 8))
    middle = [texts[place]] if doubled else []
    rest = texts[place:] if doubled else texts[place + 1 :]
    lines = [*texts[:place], *middle, *rest]
    lost = [] if doubled else [place]
    wanted = ["" if number in lost else text for number, text in enumerate(texts)]
    assert fitted(align(questions, lines), lines) == wanted
