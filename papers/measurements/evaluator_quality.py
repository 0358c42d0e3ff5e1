"""Measure how well evaluators tell useful texts from others, and choose actions.

    python papers/measurements/evaluator_quality.py DATA [--t5 FOLDER] [--default NAME] [--limit N]
        [--without NAME…]

DATA is a folder with labelled pairs below evaluator/ (dev_popqa_retr, dev_popqa_web, dev_bio,
dev_nq) and QA sets below qa/ (popqa_dev, covidqa_dev: each document says whether it holds an
answer; actions_dev: each question has its ideal action). Every text of every row counts.

Thresholds are fitted on popqa_dev (labels by page and answer) and dev_popqa_web, and tried on
actions_dev; see evaluator_actions.py for how questions that stand in both are kept apart.
"""

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import evaluator_actions
import numpy as np
from evaluator_measures import (
    Floats,
    area,
    auc_interval,
    by_chance,
    header,
    line,
    mean_interval,
    percent,
    size,
    top1,
)
from evaluator_sets import Labelled, Remembering, Scorer, bm25, read, scored_by, untitled

from crag.evaluators import T5Evaluator, load_evaluator
from crag.papers.training.metrics import accuracy, auc, best_accuracy
from crag.papers.training.pairs import Pair
from crag.state import Thresholds

PAIRS = ("dev_popqa_retr", "dev_popqa_web", "dev_bio", "dev_nq")
ANSWERS = ("popqa_dev", "covidqa_dev")
Scores = Mapping[str, Floats]
"""Of one set, by evaluator."""


class Row(NamedTuple):
    """One evaluator of the tables."""

    scorer: Scorer
    thresholds: Thresholds | None = None
    """Its own, where it has some; then 0 divides relevant from irrelevant as well."""
    titles: bool = True


def main() -> None:
    """Score every set once with every evaluator and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    print(evaluator_actions.table(actions, scores_of(rows, actions), own, known))


def evaluators(default: str, t5: Path | None) -> dict[str, Row]:
    """Return what is compared, by name."""
    vectors, embedded = Remembering(), load_evaluator(default)
    cosine = vectors.best_cosine()
    rows = {
        "BM25": Row(bm25),
        "cosine of the whole text": Row(vectors.whole_text),
        "`cosine`": Row(scored_by(cosine), cosine.thresholds),
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
    lines = ["AUC / accuracy at 0 / best accuracy\n", *header("evaluator", heads)]
    for name, row in rows.items():
        cells = []
        for place, labelled in sets.items():
            truth, scores = [p.positive for p in labelled.pairs], found[place][name].tolist()
            at_zero = percent(accuracy(truth, scores, 0.0)) if row.thresholds else "-"
            best = percent(best_accuracy(truth, scores))
            cells.append(f"{area(auc(truth, scores))} / {at_zero} / {best}")
        lines.append(line(name, cells))
    return "\n".join(lines)


def answer_task(sets: Mapping[str, Labelled], found: Mapping[str, Scores]) -> str:
    """Return AUC and top-1 for texts that hold an answer, with intervals over questions."""
    heads = [f"{name}, {what}" for name in sets for what in ("AUC", "top-1")]
    lines = ["Does the text hold an answer? With 95 % bootstrap intervals by question.\n"]
    lines += [f"{name}: {size(labelled.pairs)}.\n" for name, labelled in sets.items()]
    lines += header("evaluator", heads)
    chance = [
        cell for labelled in sets.values() for cell in ("0.500", percent(by_chance(labelled.pairs)))
    ]
    for name in found[next(iter(sets))]:
        cells: list[str] = []
        for place, labelled in sets.items():
            cells += measured(labelled.pairs, found[place][name])
        lines.append(line(name, cells))
    return "\n".join([*lines, line("chance", chance)])


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
    lines = ["popqa_dev by relation: AUC / top-1\n", *header("evaluator", heads)]
    for name, scores in found.items():
        cells = [shown(part, scores[kinds == kind]) for kind, part in parts.items()]
        lines.append(line(name, cells))
    chance = [f"0.500 / {percent(by_chance(part))}" for part in parts.values()]
    return "\n".join([*lines, line("chance", chance)])


def shown(pairs: Sequence[Pair], scores: Floats) -> str:
    """Return AUC and top-1 without intervals."""
    found = auc([pair.positive for pair in pairs], scores.tolist())
    return f"{area(found)} / {percent(float(top1(pairs, scores).mean()))}"


if __name__ == "__main__":
    main()
