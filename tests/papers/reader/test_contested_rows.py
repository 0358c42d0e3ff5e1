"""Questions with rivals: what a step of a reader's training holds of them."""

import random

import pytest

from crag.errors import TrainingError
from crag.papers.reader.asked_questions import AskedQuestion
from crag.papers.reader.contested_rows import (
    WEIGHTS,
    ContestedExamples,
    batch_of,
    contest,
    near_unit,
)
from crag.papers.reader.reading_rows import UNKNOWN, ReadingExamples
from tests.papers.reader.test_encoder import ROWS
from tests.papers.reader.test_reader import ROWS as LABELLED
from tests.trained import packaged_tokenizer


def examples(rivals: int = 2, max_length: int = 64, steps: int = 3) -> ContestedExamples:

    tokenizer = packaged_tokenizer()
    labelled = ReadingExamples(LABELLED, range(5), tokenizer, max_length)
    return ContestedExamples(
        labelled, ROWS, questions=2, rows=3, rivals=rivals, steps=steps, seed=0
    )


def test_a_question_has_its_section_rivals_and_something_else() -> None:
    draw = random.Random(0)  # noqa: S311 - an order, no secret
    question = AskedQuestion(question="kettle place", kind="search")
    right, *rivals, other, far = contest(ROWS, 0, question, 4, draw, 64)
    assert right.evidence == [ROWS[0].unit]
    assert (right.title, right.text) == ("Hall > Things", ROWS[0].text)
    assert (right.entity, right.answer, right.span_known) == (1, 1, False)
    assert {row.text for row in rivals} == {rival.text for rival in ROWS[0].rivals}
    assert {row.text for row in (other, far)} <= {row.text for row in ROWS}
    assert [(row.entity, row.answer, row.evidence) for row in (*rivals, other, far)] == [
        *[(None, 0, [])] * 4, (0, 0, [])
    ]  # fmt: skip
    assert {row.question for row in (right, *rivals, far)} == {"kettle place?"}


def test_no_section_stands_against_itself() -> None:
    row = ROWS[0].model_copy(update={"rivals": ROWS[0].rivals[:1]})
    again = row.model_copy(update={"unit": (0, 5)})
    asked = [row, again, again, ROWS[-1]]
    for seed in range(9):
        draw = random.Random(seed)  # noqa: S311 - an order, no secret
        _, *wrong = contest(asked, 0, row.questions[0], 3, draw, 64)
        assert {one.text for one in wrong} == {row.rivals[0].text, ROWS[-1].text}
    with pytest.raises(TrainingError, match="nothing stands against it"):
        ContestedExamples(
            examples().labelled, [row, again], questions=1, rows=1, rivals=2, steps=1, seed=0
        )


@pytest.mark.parametrize(("room", "start"), [(200, 0), (60, 64), (20, 74)])
def test_a_text_is_read_from_near_its_unit(room: int, start: int) -> None:
    text = "word and " * 9 + "the unit ends here. After it."
    begin = text.index("the unit")
    row = ROWS[0].model_copy(update={"text": text, "unit": (begin, begin + 19)})
    shown, unit = near_unit(row, room)
    assert shown[slice(*unit)] == "the unit ends here."
    assert text.endswith(shown)
    assert abs(len(text) - len(shown) - start) <= 9
    assert shown[0] == text[0] or text[text.index(shown) - 1] == " "


def test_a_step_has_questions_before_rows_and_is_the_same_again() -> None:
    made = examples()
    items = [made[place] for place in range(len(made))]
    assert [len(item) for item in items] == [4, 4, 1, 1, 1] * 3
    rows = [item[0]["input_ids"] for item in items if len(item) == 1]
    assert rows == [made.labelled[place % 5]["input_ids"] for place in range(9)]
    assert items == [examples()[place] for place in range(len(made))]
    asked = [tuple(item[0]["input_ids"]) for item in items if len(item) > 1]
    assert len(set(asked)) == 6


def test_a_batch_says_who_contests_and_what_counts() -> None:
    made = examples()
    batch = batch_of([made[place] for place in range(5)])
    assert batch["contested"].tolist() == [[0, 1, 2], [4, 5, 6]]
    right, rival, far = WEIGHTS["right"], WEIGHTS["rival"], WEIGHTS["far"]
    wanted = [right, rival, rival, far, right, rival, rival, far, 1, 1, 1]
    assert batch["weight"].tolist() == pytest.approx(wanted)
    assert batch["text"].shape == batch["input_ids"].shape
    assert not batch["text"][:, 0].any()
    known = batch["evidence"] != UNKNOWN
    assert (batch["text"] == known).all()


def test_a_section_whose_unit_is_cut_off_does_not_contest() -> None:
    made = examples(max_length=16)
    item = made[0]
    item[0]["answer"] = UNKNOWN
    batch = batch_of([item, made[1], made[2]])
    assert batch["contested"].tolist() == [[4, 5, 6]]


def test_rows_alone_have_nothing_that_contests() -> None:
    made = examples()
    assert batch_of([made[2], made[3]])["contested"].shape == (0, 0)
