"""Measure how well evaluators tell useful texts from others, and choose actions.

    python -m crag.papers.studies.evaluator_quality DATA [--t5 FOLDER] [--default NAME] [--limit N]
        [--without NAME…]

DATA is a folder with labelled pairs below evaluator/ (dev_popqa_retr, dev_popqa_web, dev_bio,
dev_nq) and QA sets below qa/ (popqa_dev, covidqa_dev: each document says whether it holds an
answer; actions_dev: each question has its ideal action). Every text of every row counts.

Thresholds are fitted on popqa_dev (labels by page and answer) and dev_popqa_web, each set as it is
and without its relevant texts, and tried on actions_dev. They come from other questions than those
they are tried on: five fits leave a fifth of the questions out each.
"""

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crag.correction.action import decide
from crag.errors import TrainingError
from crag.evaluators import T5Evaluator, load_evaluator
from crag.papers.bench.report import table
from crag.papers.evaluator.evidence import Evidence, Question
from crag.papers.evaluator.metrics import Floats, accuracy, auc, best_accuracy, confusion
from crag.papers.evaluator.pairs import Pair, by_question
from crag.papers.evaluator.thresholds import Aim, Costs, JudgedSet, fit
from crag.papers.studies.evaluator_sets import (
    Labelled,
    Scorer,
    bm25,
    cosines,
    read,
    scored_by,
    untitled,
)
from crag.state import ACTIONS, Action, Thresholds

PAIRS = ("dev_popqa_retr", "dev_popqa_web", "dev_bio", "dev_nq")
ANSWERS = ("popqa_dev", "covidqa_dev")
Scores = Mapping[str, Floats]
"""Of one set, by evaluator."""


RESAMPLES = 1000
AIMS = {
    "fitted by shares": Aim(),
    "fitted by costs": Aim(costs=Costs(wrong=1, needless=1, discarded=1)),
}
FOLDS = 5
Known = Sequence[tuple[Labelled, Floats]]
"""Sets to fit thresholds on, with their scores."""
_RELEVANT = 1.0


class Row(NamedTuple):
    """One evaluator of the tables."""

    scorer: Scorer
    thresholds: Thresholds | None = None
    """Its own, where it has some; then 0 divides relevant from irrelevant as well."""
    titles: bool = True


class Set(NamedTuple):
    """The best score of a set of texts, its question and its ideal action."""

    question: str
    best: float
    ideal: Action


def main() -> None:
    """Score every set once with every evaluator and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--t5", type=Path, help="a checkpoint in the paper's format")
    parser.add_argument("--default", default="default", help="name or folder of the embedded one")
    parser.add_argument("--limit", type=int, help="use only the first questions of each set")
    parser.add_argument("--without", nargs="*", default=[], help="rows to leave out, by name")
    asked = parser.parse_args()
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    rows = evaluators(asked.default, asked.t5)
    rows = {name: row for name, row in rows.items() if name.strip("`") not in asked.without}
    pairs = {name: read(asked.data / f"evaluator/{name}.jsonl", asked.limit) for name in PAIRS}
    answers = {name: read(asked.data / f"qa/{name}.jsonl", asked.limit) for name in ANSWERS}
    actions = read(asked.data / "qa/actions_dev.jsonl", asked.limit)
    found = {name: scores_of(rows, labelled) for name, labelled in (pairs | answers).items()}
    print(classification(pairs, found, rows), end="\n\n")
    print(answer_task(answers, found), end="\n\n")
    print(relations(answers["popqa_dev"], found["popqa_dev"]), end="\n\n")
    graded = read(asked.data / "qa/popqa_dev.jsonl", asked.limit, "graded")
    known = {
        name: [
            (graded, found["popqa_dev"][name]),
            (pairs["dev_popqa_web"], found["dev_popqa_web"][name]),
        ]
        for name in rows
    }
    own = {name: row.thresholds for name, row in rows.items()}
    print(action_table(actions, scores_of(rows, actions), own, known))


def evaluators(default: str, t5: Path | None) -> dict[str, Row]:
    """Return what is compared, by name."""
    embedded = load_evaluator(default)
    rows = {
        "BM25": Row(bm25),
        "cosine of the whole text": Row(cosines),
        "`default`": Row(scored_by(embedded), embedded.thresholds),
        "`default`, titles removed": Row(scored_by(embedded), embedded.thresholds, titles=False),
    }
    if t5 is not None:
        paper = T5Evaluator(t5)
        rows["T5"] = Row(scored_by(paper), paper.thresholds)
    return rows


def scores_of(rows: Mapping[str, Row], labelled: Labelled) -> dict[str, Floats]:
    """Score a set with every evaluator."""
    bare = untitled(labelled.pairs)
    return {
        name: np.array(row.scorer(labelled.pairs if row.titles else bare))
        for name, row in rows.items()
    }


def classification(
    sets: Mapping[str, Labelled], found: Mapping[str, Scores], rows: Mapping[str, Row]
) -> str:
    """Return AUC, accuracy at 0 and best accuracy on the sets of labelled pairs."""
    heads = [f"{name}: {size(labelled.pairs)}" for name, labelled in sets.items()]
    lines = []
    for name, row in rows.items():
        cells = []
        for place, labelled in sets.items():
            truth, scores = [p.positive for p in labelled.pairs], found[place][name].tolist()
            at_zero = percent(accuracy(truth, scores, 0.0)) if row.thresholds else "-"
            best = percent(best_accuracy(truth, scores))
            cells.append(f"{area(auc(truth, scores))} / {at_zero} / {best}")
        lines.append([name, *cells])
    return f"AUC / accuracy at 0 / best accuracy\n\n{table(('evaluator', *heads), lines)}"


def answer_task(sets: Mapping[str, Labelled], found: Mapping[str, Scores]) -> str:
    """Return AUC and top-1 for texts that hold an answer, with intervals over questions."""
    heads = [f"{name}, {what}" for name in sets for what in ("AUC", "top-1")]
    said = ["Does the text hold an answer? With 95 % bootstrap intervals by question."]
    said += [f"{name}: {size(labelled.pairs)}." for name, labelled in sets.items()]
    lines = [
        [name, *(cell for p, one in sets.items() for cell in measured(one.pairs, found[p][name]))]
        for name in found[next(iter(sets))]
    ]
    chance = [cell for one in sets.values() for cell in ("0.500", percent(by_chance(one.pairs)))]
    return "\n\n".join([*said, table(("evaluator", *heads), [*lines, ["chance", *chance]])])


def measured(pairs: Sequence[Pair], scores: Floats) -> list[str]:
    """Return AUC and top-1 of one evaluator on one set, each with its interval."""
    hits = top1(pairs, scores)
    low, high = auc_interval(pairs, scores)
    least, most = mean_interval(hits)
    shown = area(auc([pair.positive for pair in pairs], scores.tolist()))
    return [
        f"{shown} ({low:.3f} to {high:.3f})",
        f"{percent(float(hits.mean()))} ({100 * least:.0f} to {100 * most:.0f})",
    ]


def relations(labelled: Labelled, found: Scores) -> str:
    """Return AUC and top-1 for each kind of question."""
    kinds = np.array([labelled.relations[pair.question] for pair in labelled.pairs])
    parts = {
        kind: [labelled.pairs[place] for place in np.flatnonzero(kinds == kind)]
        for kind in np.unique(kinds).tolist()
    }
    heads = [f"{kind}: {size(part)}" for kind, part in parts.items()]
    lines = [
        [name, *(shown(part, scores[kinds == kind]) for kind, part in parts.items())]
        for name, scores in found.items()
    ]
    lines.append(["chance", *(f"0.500 / {percent(by_chance(part))}" for part in parts.values())])
    return f"popqa_dev by relation: AUC / top-1\n\n{table(('evaluator', *heads), lines)}"


def shown(pairs: Sequence[Pair], scores: Floats) -> str:
    """Return AUC and top-1 without intervals."""
    found = auc([pair.positive for pair in pairs], scores.tolist())
    return f"{area(found)} / {percent(float(top1(pairs, scores).mean()))}"


def action_table(
    labelled: Labelled,
    scores: Mapping[str, Floats],
    own: Mapping[str, Thresholds | None],
    known: Mapping[str, Known],
) -> str:
    """Return one line for each evaluator and each way to choose its thresholds."""
    total = [sum(action == ideal for action in _ideals(labelled)) for ideal in ACTIONS]
    heads = ["thresholds", "upper, lower", "three-way accuracy", "usable or not"]
    counts = [f"of {n} {ideal}" for n, ideal in zip(total, ACTIONS, strict=True)]
    lines = []
    for name, found in scores.items():
        sets = sets_of(labelled, found)
        if (thresholds := own[name]) is not None:
            lines.append(_row(name, "its own", sets, [thresholds] * len(sets)))
        pool = list(fitting(known[name]))
        for how, aim in AIMS.items():
            try:
                lines.append(_row(name, how, sets, fitted(sets, pool, aim)))
            except TrainingError as error:
                lines.append([name, how, str(error).partition(":")[0], *["-"] * 5])
    return (
        f"{sum(total)} questions with {len(labelled.pairs)} texts. The last columns say how many "
        "are judged correct / ambiguous / incorrect.\n\n"
        + table(("evaluator", *heads, *counts), lines)
    )


def _ideals(labelled: Labelled) -> list[Action]:
    questions = dict.fromkeys(pair.question for pair in labelled.pairs)
    return [labelled.actions[question] for question in questions]


def sets_of(labelled: Labelled, scores: Floats) -> list[Set]:
    """Return what an action depends on."""
    return [
        Set(group[0].question, float(found.max()), labelled.actions[group[0].question])
        for group, found in of_questions(labelled.pairs, scores)
    ]


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


def _row(name: str, how: str, sets: Sequence[Set], thresholds: Sequence[Thresholds]) -> list[str]:
    chosen = [decide([one.best], **own) for one, own in zip(sets, thresholds, strict=True)]
    ideal = [one.ideal for one in sets]
    pairs = list(zip(ideal, chosen, strict=True))
    right = float(np.mean([wanted == given for wanted, given in pairs]))
    usable = [(wanted == "incorrect") == (given == "incorrect") for wanted, given in pairs]
    counts = confusion(ideal, chosen)
    upper = float(np.mean([own["upper"] for own in thresholds]))
    lower = float(np.mean([own["lower"] for own in thresholds]))
    return [
        name,
        how,
        f"{upper:.3f}, {lower:.3f}",
        percent(right),
        percent(float(np.mean(usable))),
        *(" / ".join(str(counts[row][column]) for column in ACTIONS) for row in ACTIONS),
    ]


def of_questions(pairs: Sequence[Pair], scores: Floats) -> Iterator[tuple[list[Pair], Floats]]:
    """Yield the pairs of each question with their scores."""
    groups = list(by_question(pairs).values())
    ends = np.cumsum([0, *map(len, groups)])
    for group, (start, end) in zip(groups, pairwise(ends), strict=True):
        yield group, scores[start:end]


def top1(pairs: Sequence[Pair], scores: Floats) -> Floats:
    """Return 1 for each question whose best text is relevant, else 0; a tie counts by its share.

    Questions without a relevant text are left out.
    """
    return np.array(
        [
            np.mean([pair.positive for pair, own in zip(group, found, strict=True) if own == best])
            for group, found in of_questions(pairs, scores)
            for best in (found.max(),)
            if any(pair.positive for pair in group)
        ]
    )


def by_chance(pairs: Sequence[Pair]) -> float:
    """Return top-1 of a choice at random."""
    return float(top1(pairs, np.zeros(len(pairs))).mean())


def auc_interval(pairs: Sequence[Pair], scores: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the AUC over questions."""
    groups = by_question(pairs).values()
    number = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    truth = np.array([pair.positive for pair in pairs])
    values, place = np.unique(scores, return_inverse=True)

    def area(draw: Floats) -> float:
        weights = draw[number]
        yes = np.bincount(place, weights * truth, minlength=len(values))
        no = np.bincount(place, weights * ~truth, minlength=len(values))
        both = float(yes.sum() * no.sum())
        return float(yes @ (no.cumsum() - no / 2)) / both if both else 0.5

    return interval(area, len(groups))


def mean_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean."""
    return interval(lambda draw: float(draw @ values / draw.sum()), len(values))


def interval(statistic: Callable[[Floats], float], size: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic of how often each one is drawn; seed 0."""
    shares = np.full(size, 1 / size)
    draws = np.random.default_rng(0).multinomial(size, shares, size=RESAMPLES)
    found = [statistic(draw.astype(np.float64)) for draw in draws]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def area(value: float | None) -> str:
    """Show an AUC."""
    return "-" if value is None else f"{value:.3f}"


def percent(share: float) -> str:
    """Show a share."""
    return f"{100 * share:.1f} %"


def size(pairs: Sequence[Pair]) -> str:
    """Say how many questions and pairs there are."""
    relevant = sum(pair.positive for pair in pairs)
    return f"{len(by_question(pairs))} questions, {len(pairs)} pairs, {relevant} relevant"


if __name__ == "__main__":
    main()
