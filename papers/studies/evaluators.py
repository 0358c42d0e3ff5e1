"""Measure how well evaluators tell useful texts from others, and choose actions (CRAG, Table 4).

    python -m crag.papers.studies.evaluators DATA [--evaluator NAME…] [--limit N]

DATA has labelled pairs in evaluator/ (dev_popqa_retr, dev_popqa_web, dev_bio, dev_nq), and in qa/
QA sets whose documents say whether they hold an answer (popqa_dev, covidqa_dev), or whose questions
have an ideal action (actions_dev). NAME is an evaluator of `CRAG_EVALUATOR`, such as `default`, the
folder of a T5, or `chat-cot`. Intervals are 95 % bootstrap intervals over questions.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crag.correction.action import decide
from crag.evaluators import load_evaluator
from crag.factory.parts import choose_model
from crag.papers.bench.report import table
from crag.papers.bench.summary import bootstrap
from crag.papers.evaluator.evidence import (
    Question,
    confusion,
    quality,
    read_questions,
    score_questions,
    top1,
)
from crag.parts import Evaluator
from crag.runtime.environment import Environment
from crag.state import ACTIONS, Action

SETS = (
    "evaluator/dev_popqa_retr", "evaluator/dev_popqa_web", "evaluator/dev_bio", "evaluator/dev_nq",
    "qa/popqa_dev", "qa/covidqa_dev",
)  # fmt: skip


def main() -> None:
    """Score every set with every evaluator, and print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--evaluator", nargs="+", default=["default"], help="names or folders")
    parser.add_argument("--limit", type=int, help="use only the first questions of each set")
    given = parser.parse_args()
    model = choose_model(Environment())
    named: dict[str, Evaluator] = {
        name: load_evaluator(name, model=model) for name in given.evaluator
    }
    sets = {
        Path(name).name: read_questions(given.data / f"{name}.jsonl", "auto")[0][: given.limit]
        for name in SETS
    }
    rows = [
        [name, *(_quality(evaluator, questions) for questions in sets.values())]
        for name, evaluator in named.items()
    ]
    heads = [f"{name}: {len(questions)} questions" for name, questions in sets.items()]
    print(table(("AUC / accuracy at 0 / top-1", *heads), rows), end="\n\n")
    asked = read_questions(given.data / "qa/actions_dev.jsonl", "auto")[0][: given.limit]
    heads = ["right action", *(f"judged of ideally {ideal}" for ideal in ACTIONS)]
    print(table(("", *heads), [_actions(name, one, asked) for name, one in named.items()]))


def _quality(evaluator: Evaluator, questions: Sequence[Question]) -> str:
    evidence = score_questions(evaluator, questions)
    found = quality(evidence.pairs, evidence.all_scores)
    hits = [
        share
        for one, scores in zip(questions, evidence.scores, strict=True)
        if (share := top1(one.pairs, scores)) is not None
    ]
    low, high = bootstrap(hits, 0)
    numbers = " / ".join(f"{found[name]:.3f}" for name in ("auc", "accuracy", "top1"))
    return f"{numbers} ({low:.2f} to {high:.2f})"


def _actions(name: str, evaluator: Evaluator, questions: Sequence[Question]) -> list[str]:
    sets = score_questions(evaluator, questions).sets
    ideal: list[Action] = [one.ideal for one in sets]
    chosen: list[Action] = [decide([one.best], **evaluator.thresholds) for one in sets]
    right = [float(one == other) for one, other in zip(ideal, chosen, strict=True)]
    low, high = bootstrap(right, 0)
    counts = confusion(ideal, chosen)
    shown = (" / ".join(str(counts[row][one]) for one in ACTIONS) for row in ACTIONS)
    return [name, f"{100 * np.mean(right):.1f} % ({100 * low:.0f} to {100 * high:.0f})", *shown]


if __name__ == "__main__":
    main()
