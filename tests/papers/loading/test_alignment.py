import random

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
