"""Fit slope, intercept and thresholds of the cosine evaluator on labelled pairs.

    python papers/measurements/fit_cosine.py PAIRS.jsonl… [--write src/crag/evaluators/cosine.json]

Each line of a file holds question, title, text and label (1: relevant). Files weigh the same.
Slope and intercept come from a logistic regression on the best cosine of a text. The upper
threshold is the lowest at which the best document of a question judged Correct is relevant in at
least 92 % of them; the lower is the highest that discards at most 2 % of the questions that have a
relevant document.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from crag.evaluators import CosineEvaluator
from crag.models.encoder import packaged_encoder
from crag.parts import Passage

PRECISION_OF_CORRECT = 0.92
SHARE_DISCARDED = 0.02
Pair = tuple[str, int, float]
"""Question, label, cosine."""


def main() -> None:
    """Fit on all files together, print the metrics and write the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, help="JSONL files of labelled pairs")
    parser.add_argument("--write", type=Path, help="where to write the card")
    arguments = parser.parse_args()
    sets = {path.stem: read_pairs(path) for path in arguments.pairs}
    card = fit(sets)
    text = json.dumps(card, indent=2) + "\n"
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    print(text)


def read_pairs(path: Path) -> list[Pair]:
    """Read the pairs of one file and compute the best cosine of each."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    by_question: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_question[row["question"]].append(row)
    evaluator = CosineEvaluator.fitted(packaged_encoder())
    return [
        (question, int(row["label"]), cosine or 0.0)
        for question, group in by_question.items()
        for row, cosine in zip(
            group,
            evaluator.cosines(question, [Passage(r["title"], r["text"]) for r in group]),
            strict=True,
        )
    ]


def fit(sets: dict[str, list[Pair]]) -> dict[str, object]:
    """Return the card: what the evaluator needs, and how well it does on each set."""
    cosines = np.array([cosine for pairs in sets.values() for _, _, cosine in pairs])
    labels = np.array([label for pairs in sets.values() for _, label, _ in pairs])
    weights = np.concatenate([np.full(len(pairs), 1 / len(pairs)) for pairs in sets.values()])
    model = LogisticRegression(C=1e6).fit(cosines[:, None], labels, weights * len(labels))
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    best = [pair for pairs in sets.values() for pair in best_of_questions(pairs)]
    upper, lower = thresholds(best)

    def score(cosine: float) -> float:
        return round(float(np.tanh((slope * cosine + intercept) / 2)), 3)

    return {
        "encoder": packaged_encoder().name,
        "slope": round(slope, 4),
        "intercept": round(intercept, 4),
        "upper": score(upper),
        "lower": score(lower),
        "aims": {"precision_of_correct": PRECISION_OF_CORRECT, "discarded": SHARE_DISCARDED},
        "questions": len(best),
        "auc": {name: auc(pairs) for name, pairs in sets.items()},
    }


def best_of_questions(pairs: Sequence[Pair]) -> list[tuple[float, bool, bool]]:
    """Return for each question its best cosine, whether that text is relevant, whether any is."""
    by_question: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for question, label, cosine in pairs:
        by_question[question].append((cosine, label))
    return [
        (max(texts)[0], bool(max(texts)[1]), any(label for _, label in texts))
        for texts in by_question.values()
    ]


def thresholds(best: Sequence[tuple[float, bool, bool]]) -> tuple[float, float]:
    """Return the upper and lower threshold, as cosines, that meet the two aims."""
    ranked = sorted(best, reverse=True)
    precision = np.cumsum([relevant for _, relevant, _ in ranked]) / np.arange(1, len(ranked) + 1)
    last = max(np.flatnonzero(precision >= PRECISION_OF_CORRECT), default=0)
    answerable = sorted(cosine for cosine, _, any_relevant in best if any_relevant)
    return ranked[last][0], answerable[int(len(answerable) * SHARE_DISCARDED)]


def auc(pairs: Sequence[Pair]) -> float:
    """Return the area under the ROC curve over all pairs of a set."""
    return round(float(roc_auc_score([p[1] for p in pairs], [p[2] for p in pairs])), 3)


if __name__ == "__main__":
    main()
