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
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from crag.evaluators import CosineEvaluator
from crag.models.encoder import packaged_encoder
from crag.papers.training.metrics import auc
from crag.papers.training.pairs import Pair, by_question, read_pairs
from crag.parts import Passage

PRECISION_OF_CORRECT = 0.92
SHARE_DISCARDED = 0.02
Scored = Sequence[tuple[Pair, float]]
"""Pairs of one file, question by question, with their best cosines."""


def main() -> None:
    """Fit on all files together, print the metrics and write the card."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, help="JSONL files of labelled pairs")
    parser.add_argument("--write", type=Path, help="where to write the card")
    arguments = parser.parse_args()
    card = fit({path.stem: scored(read_pairs(path)) for path in arguments.pairs})
    text = json.dumps(card, indent=2) + "\n"
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    print(text)


def scored(pairs: Sequence[Pair]) -> Scored:
    """Compute the best cosine of each text."""
    evaluator = CosineEvaluator.fitted(packaged_encoder())
    found: list[tuple[Pair, float]] = []
    for question, group in by_question(pairs).items():
        cosines = evaluator.cosines(question, [Passage(pair.title, pair.text) for pair in group])
        found += [(pair, cosine or 0.0) for pair, cosine in zip(group, cosines, strict=True)]
    return found


def fit(sets: dict[str, Scored]) -> dict[str, object]:
    """Return the card: what the evaluator needs, and how well it does on each set."""
    cosines = np.array([cosine for found in sets.values() for _, cosine in found])
    labels = np.array([pair.positive for found in sets.values() for pair, _ in found])
    weights = np.concatenate([np.full(len(found), 1 / len(found)) for found in sets.values()])
    model = LogisticRegression(C=1e6).fit(cosines[:, None], labels, weights * len(labels))
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    best = [one for found in sets.values() for one in best_of_questions(found)]
    upper, lower = thresholds(best)

    def score(cosine: float) -> float:
        return round(float(np.tanh((slope * cosine + intercept) / 2)), 3)

    areas = {
        name: auc([pair.positive for pair, _ in found], [cosine for _, cosine in found])
        for name, found in sets.items()
    }
    return {
        "encoder": packaged_encoder().name,
        "slope": round(slope, 4),
        "intercept": round(intercept, 4),
        "upper": score(upper),
        "lower": score(lower),
        "aims": {"precision_of_correct": PRECISION_OF_CORRECT, "discarded": SHARE_DISCARDED},
        "questions": len(best),
        "auc": {name: round(area or 0.0, 3) for name, area in areas.items()},
    }


def best_of_questions(found: Scored) -> list[tuple[float, bool, bool]]:
    """Return for each question its best cosine, whether that text is relevant, whether any is."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    for pair, cosine in found:
        groups.setdefault(pair.question, []).append((cosine, pair.positive))
    return [(*max(texts), any(label for _, label in texts)) for texts in groups.values()]


def thresholds(best: Sequence[tuple[float, bool, bool]]) -> tuple[float, float]:
    """Return the upper and lower threshold, as cosines, that meet the two aims."""
    ranked = sorted(best, reverse=True)
    precision = np.cumsum([relevant for _, relevant, _ in ranked]) / np.arange(1, len(ranked) + 1)
    last = max(np.flatnonzero(precision >= PRECISION_OF_CORRECT), default=0)
    answerable = sorted(cosine for cosine, _, any_relevant in best if any_relevant)
    return ranked[last][0], answerable[int(len(answerable) * SHARE_DISCARDED)]


if __name__ == "__main__":
    main()
