"""Which action an evaluator's scores lead to, with its own thresholds and with fitted ones.

Thresholds that are fitted here come from other questions than those they are tried on: where the
data of the fit share questions with the sets that are judged, five fits leave a fifth of the
questions out each. Every set serves the fit twice: as it is and without its relevant texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from evaluator_measures import Floats, header, line, of_questions, percent
from evaluator_sets import Labelled

from crag.correction.action import decide
from crag.errors import TrainingError
from crag.papers.training.evidence import Evidence, Question
from crag.papers.training.metrics import confusion
from crag.papers.training.pairs import Pair
from crag.papers.training.thresholds import Aim, Costs, JudgedSet, fit
from crag.state import ACTIONS, Action, Thresholds

AIMS = {
    "fitted by shares": Aim(),
    "fitted by costs": Aim(costs=Costs(wrong=1, needless=1, discarded=1)),
}
FOLDS = 5
Known = Sequence[tuple[Labelled, Floats]]
"""Sets to fit thresholds on, with their scores."""
_RELEVANT = 1.0


class Set(NamedTuple):
    """The best score of a set of texts, its question and its ideal action."""

    question: str
    best: float
    ideal: Action


def sets_of(labelled: Labelled, scores: Floats) -> list[Set]:
    """Return what an action depends on."""
    return [
        Set(group[0].question, float(found.max()), labelled.actions[group[0].question])
        for group, found in of_questions(labelled.pairs, scores)
    ]


def table(
    labelled: Labelled,
    scores: Mapping[str, Floats],
    own: Mapping[str, Thresholds | None],
    known: Mapping[str, Known],
) -> str:
    """Return one line for each evaluator and each way to choose its thresholds."""
    total = [sum(action == ideal for action in _ideals(labelled)) for ideal in ACTIONS]
    heads = ["thresholds", "upper, lower", "three-way accuracy", "usable or not"]
    counts = [f"of {n} {ideal}" for n, ideal in zip(total, ACTIONS, strict=True)]
    said = (
        f"{sum(total)} questions with {len(labelled.pairs)} texts. The last columns say how many "
        "are judged correct / ambiguous / incorrect.\n"
    )
    lines = [said, *header("evaluator", heads + counts)]
    for name, found in scores.items():
        sets = sets_of(labelled, found)
        if (thresholds := own[name]) is not None:
            lines.append(_row(name, "its own", sets, [thresholds] * len(sets)))
        pool = list(fitting(known[name]))
        for how, aim in AIMS.items():
            try:
                lines.append(_row(name, how, sets, fitted(sets, pool, aim)))
            except TrainingError as error:
                lines.append(line(name, [how, str(error).partition(":")[0], *["-"] * 5]))
    return "\n".join(lines)


def _ideals(labelled: Labelled) -> list[Action]:
    questions = dict.fromkeys(pair.question for pair in labelled.pairs)
    return [labelled.actions[question] for question in questions]


def fitting(known: Known) -> Iterator[tuple[str, JudgedSet]]:
    """Yield each set as it is, and without its relevant texts if others are left."""
    for labelled, scores in known:
        for group, found in of_questions(labelled.pairs, scores):
            every = range(len(group))
            rest = [number for number in every if group[number].label < _RELEVANT]
            yield group[0].question, _judged(group, found)
            if 0 < len(rest) < len(group):
                yield group[0].question, _judged([group[n] for n in rest], found[rest])


def _judged(pairs: list[Pair], scores: Floats) -> JudgedSet:
    question = Question(question=pairs[0].question, pairs=pairs)
    return Evidence(questions=[question], scores=[scores.tolist()]).sets[0]


def fitted(
    sets: Sequence[Set], pool: Sequence[tuple[str, JudgedSet]], aim: Aim
) -> list[Thresholds]:
    """Return thresholds for each set from the questions of other folds.

    Raises:
        TrainingError: no threshold serves the aim.
    """
    fold_of = {one.question: number % FOLDS for number, one in enumerate(sets)}
    folds = [
        fit(
            [judged for question, judged in pool if fold_of.get(question) != fold], aim, resamples=1
        )
        for fold in range(FOLDS)
    ]
    return [folds[fold_of[one.question]].thresholds for one in sets]


def _row(name: str, how: str, sets: Sequence[Set], thresholds: Sequence[Thresholds]) -> str:
    chosen = [decide([one.best], **own) for one, own in zip(sets, thresholds, strict=True)]
    ideal = [one.ideal for one in sets]
    pairs = list(zip(ideal, chosen, strict=True))
    right = float(np.mean([wanted == given for wanted, given in pairs]))
    usable = [(wanted == "incorrect") == (given == "incorrect") for wanted, given in pairs]
    counts = confusion(ideal, chosen)
    upper = float(np.mean([own["upper"] for own in thresholds]))
    lower = float(np.mean([own["lower"] for own in thresholds]))
    return line(
        name,
        [
            how,
            f"{upper:.3f}, {lower:.3f}",
            percent(right),
            percent(float(np.mean(usable))),
            *(" / ".join(str(counts[row][column]) for column in ACTIONS) for row in ACTIONS),
        ],
    )
