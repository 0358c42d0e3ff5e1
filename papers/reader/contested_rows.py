"""Questions that a reader learns from with their rivals, beside its labelled rows.

A step has so many contested questions, then so many labelled rows. A contested question comes with
the section that answers it, its rivals, among which the section is to be the best, and a section
about something else.
"""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag.errors import TrainingError
from crag.models.reading_model import with_question_mark
from crag.papers.reader.asked_questions import AskedQuestion, AskedRow, Rival
from crag.papers.reader.reading_rows import (
    UNKNOWN,
    ReadingExamples,
    ReadingRow,
    padded,
)

if TYPE_CHECKING:
    from crag.papers.reader.teacher import TeacherTokens

WEIGHTS = {"right": 1.0, "loose": 0.5, "rival": 0.4, "far": 0.5}
"""What counts how much: the section, the same of a question that is not surely answered, a rival,
which may answer too, and a section about something else."""
_TITLE = 200
"""Characters of title and headings that are read."""
_CHARACTERS, _BEFORE = 3, 4
"""Characters of a token at least, and the part of them that is read before a unit."""
Example = dict[str, Any]


class ContestedExamples:
    """A map-style data set of steps: `questions` questions with `rivals` each, then `rows` rows."""

    def __init__(  # noqa: PLR0913 - what a step is made of
        self,
        labelled: ReadingExamples,
        asked: Sequence[AskedRow],
        *,
        questions: int,
        rows: int,
        rivals: int,
        steps: int,
        seed: int,
    ) -> None:
        self.labelled = labelled
        self.asked = asked
        self.questions, self.rows, self.rivals = questions, rows, rivals
        self.steps, self.seed = steps, seed
        if asked and len({row.text for row in asked}) == 1:
            message = "questions of one section alone cannot be learned: nothing stands against it"
            raise TrainingError(message)
        every = [(number, one) for number, row in enumerate(asked) for one in row.questions]
        draw = random.Random(seed)  # noqa: S311 - an order, no secret
        self._order: list[tuple[int, AskedQuestion]] = []
        while len(self._order) < steps * questions:
            self._order += draw.sample(every, len(every))

    def __len__(self) -> int:
        return self.steps * (self.questions + self.rows)

    def __getitem__(self, place: int) -> list[Example]:
        """Return one labelled row, or the right section, its rivals and one of something else."""
        step, at = divmod(place, self.questions + self.rows)
        if at >= self.questions:
            row = step * self.rows + at - self.questions
            return [self.labelled[row % len(self.labelled)] | {"weight": 1.0}]
        visit = step * self.questions + at
        draw = random.Random(f"{self.seed} {visit}")  # noqa: S311 - a sample, no secret
        number, question = self._order[visit]
        rows = contest(self.asked, number, question, self.rivals, draw, self.labelled.max_length)
        right = "loose" if question.kind == "loose" else "right"
        kinds = [right, *["rival"] * self.rivals, "far"]
        return [
            self.labelled.tokenised(row) | {"weight": WEIGHTS[kind]}
            for row, kind in zip(rows, kinds, strict=True)
        ]


def contest(  # noqa: PLR0913, PLR0917 - a question, and what is drawn for it
    asked: Sequence[AskedRow],
    number: int,
    question: AskedQuestion,
    rivals: int,
    draw: random.Random,
    max_length: int,
) -> list[ReadingRow]:
    """Return the section that answers, `rivals` others, and one about something else.

    A section with too few rivals is set against sections of other questions.
    """
    row, typed = asked[number], with_question_mark(question.question)
    text, unit = near_unit(row, _CHARACTERS * max_length)
    others = draw.sample(row.rivals, min(rivals, len(row.rivals)))
    away: list[AskedRow | Rival] = []
    while len(away) < rivals + 1 - len(others):
        one = draw.choice(asked)
        away += [one] * (one.text != row.text)  # Two units of one section are two rows.
    right = ReadingRow(
        question=typed, title=_title(row), text=text, entity=1, answer=1,
        evidence=[unit], span_known=False, source=f"asked_{question.kind}",
    )  # fmt: skip
    wrong = [
        ReadingRow(
            question=typed,
            title=_title(one),
            text=one.text,
            answer=0,
            evidence=[],
            source="asked_rival",
        )
        for one in (*others, *away)
    ]
    return [right, *wrong[:-1], wrong[-1].model_copy(update={"entity": 0})]


def near_unit(row: AskedRow, room: int) -> tuple[str, tuple[int, int]]:
    """Return the text of a section and the range of its unit, from near the unit if it is far.

    The unit ends within the first `room` characters if the whole of it does; else the text begins
    a part of `room` before it, at a word.
    """
    start, end = row.unit
    if end <= room:
        return row.text, row.unit
    begin = max(0, start - room // _BEFORE)
    begin = begin and min(start, row.text.find(" ", begin) + 1)
    return row.text[begin:], (start - begin, end - begin)


def _title(section: AskedRow | Rival) -> str:
    path = dict.fromkeys(filter(None, [section.title, *section.section.split(" > ")]))
    return " > ".join(path)[:_TITLE]


def batch_of(
    items: Sequence[Sequence[Example]], teacher: "TeacherTokens | None" = None
) -> dict[str, Any]:
    """Return items of `ContestedExamples` as tensors.

    `contested` has the places of each question's section and of its rivals behind it; a section
    whose unit is cut off is not contested. `text` marks the tokens of the text alone.
    """
    import torch

    examples = [example for item in items for example in item]
    batch = padded(examples)
    contested: list[list[int]] = []
    place = 0
    for item in items:
        if len(item) > 1 and item[0]["answer"] != UNKNOWN:
            contested.append(list(range(place, place + len(item) - 1)))
        place += len(item)
    rivals = max((len(item) - 1 for item in items), default=0)
    batch["contested"] = torch.tensor(contested).reshape(len(contested), rivals)
    batch["weight"] = torch.tensor([example["weight"] for example in examples])
    longest = batch["input_ids"].shape[1]
    batch["text"] = torch.tensor(
        [one["in_text"] + [False] * (longest - len(one["in_text"])) for one in examples]
    )
    if teacher is not None:
        batch |= teacher.batch([example["input_ids"] for example in examples], longest)
    return batch
