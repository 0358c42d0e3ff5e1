import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.papers.experiments.loading.alignment import align, shifted

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
    moved = shifted(lines, shift, len(questions))
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
def test_a_shift_that_begins_within_the_file_is_found(
    corpus: tuple[list[str], list[str]], part: float, doubled: bool
) -> None:
    questions, texts = corpus
    place = 3 + round(part * (len(texts) - 8))
    middle = [texts[place]] if doubled else []
    rest = texts[place:] if doubled else texts[place + 1 :]
    assert align(questions, [*texts[:place], *middle, *rest]).shift is None


def test_the_line_where_it_goes_wrong_is_named() -> None:
    questions = [f"Who is Name{place:03}?" for place in range(200)]
    texts = [f"Name{place:03} sings" for place in range(200)]
    found = align(questions, [*texts[:150], texts[149], *texts[150:]])
    assert found.shift is None
    assert found.broken_at == 150


def test_a_few_poor_lines_do_not_break_a_file() -> None:
    questions = [f"Who is Name{place:03}?" for place in range(100)]
    texts = [f"Name{place:03} sings" for place in range(100)]
    texts[20:24] = ["Enable cookies."] * 4
    texts[50] = "Name051 sings"
    found = align(questions, texts)
    assert (found.shift, found.broken_at) == (0, None)


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
