import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.papers.loading.alignment import Moved, align

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
    assert (found.shift, found.checked) == (shift, True)
    moved = found.fitted(lines)
    assert moved[max(0, -shift) :] == texts[max(0, -shift) :]
    assert len(moved) == len(questions)


@given(corpora(least=12), st.integers(2, 5), st.booleans())
@settings(deadline=None)
def test_a_shift_too_far_to_repair_belongs_nowhere(
    corpus: tuple[list[str], list[str]], distance: int, down: bool
) -> None:
    questions, texts = corpus
    lines = [""] * distance + texts if down else texts[distance:]
    assert align(questions, lines).shift is None


@given(corpora(), corpora())
@settings(deadline=None)
def test_texts_about_others_belong_nowhere(
    corpus: tuple[list[str], list[str]], other: tuple[list[str], list[str]]
) -> None:
    questions = corpus[0]
    strangers = [text.replace(text.split()[0], "Nobody") for text in other[1]]
    assert align(questions, strangers).shift is None


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
    assert align(questions, lines).fitted(lines) == wanted


def test_a_range_between_a_lost_and_a_doubled_line_is_named() -> None:
    """The published web knowledge of PopQA has such a range, of 55 questions."""
    questions = [f"In what city was Name{place:04} born?" for place in range(1399)]
    texts = [f"Name{place:04} sings" for place in range(1399)]
    lines = [*texts[:185], *texts[186:240], *texts[239:]]
    found = align(questions, lines)
    assert len(lines) == len(questions)
    assert found.shift == 0
    assert found.moved == (Moved(186, 238, -1),)
    assert found.fitted(lines) == [*texts[:185], "", *texts[186:]]


def test_weak_overlap_is_enough_where_the_range_is_long() -> None:
    """Web pages share one word of three with their question, and many share none."""
    questions = [f"Where was Ann{place} Bee{place} Cole{place} born?" for place in range(300)]
    texts = [f"Bee{place}" if place % 3 else "Enable cookies" for place in range(300)]
    lines = [*texts[:100], *texts[101:156], *texts[155:]]
    fitted = align(questions, lines).fitted(lines)
    assert [place for place in range(300) if place % 3 and fitted[place] != texts[place]] == [100]


def test_a_few_poor_lines_do_not_break_a_file() -> None:
    questions = [f"Who is Name{place:03}?" for place in range(100)]
    texts = [f"Name{place:03} sings" for place in range(100)]
    texts[20:24] = ["Enable cookies."] * 4
    texts[50] = "Name051 sings"
    found = align(questions, texts)
    assert (found.shift, found.moved) == (0, ())
    assert found.fitted(texts) == texts


def test_overlap_counts_rare_words_only() -> None:
    questions = [f"Who is Name{place}?" for place in range(10)]
    found = align(questions, [f"Who is it? Name{place}." for place in range(10)])
    assert found.overlaps == {0: pytest.approx(1.0), -1: 0.0, 1: 0.0}
    assert found.unrelated == 0.0


def test_empty_lines_take_no_part() -> None:
    questions = [f"Who is Name{place}?" for place in range(12)]
    texts = [f"Name{place}" if place % 2 else "" for place in range(12)]
    found = align(questions, texts)
    assert (found.shift, found.overlaps[0]) == (0, pytest.approx(1.0))


@pytest.mark.parametrize(("lines", "shift"), [(3, 0), (2, None), (4, None)])
def test_few_lines_are_not_checked(lines: int, shift: int | None) -> None:
    found = align(["one?", "two?", "three?"], ["text"] * lines)
    assert (found.shift, found.checked) == (shift, False)
