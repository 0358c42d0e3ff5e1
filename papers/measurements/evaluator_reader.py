"""Entity and answer side by side: the shipped evaluator and a reader, on the development sets.

    python papers/measurements/evaluator_reader.py DATA [--reader FOLDER] [--limit N] [--sets NAME…]

DATA is a folder with evaluator/, qa/ and reading/ (see evaluator_quality.py). `squad_dev`: is the
right paragraph first among all those of its article, for 100 questions? `squad2`: questions of
the articles that are not trained on, each with its own paragraph, answered there or not. A grade
is one number; beside it stand the two outputs of the reader that it blends.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from docs_reading import load
from evaluator_sets import read, untitled
from numpy.typing import NDArray

from crag.correction.scoring import with_title
from crag.evaluators import load_evaluator
from crag.papers.training.metrics import auc
from crag.papers.training.pairs import Pair, by_question
from crag.papers.training.reading_sources import HELD_OUT
from crag.papers.training.records import read_objects
from crag.parts import Passage

PAIRS = ("dev_popqa_retr", "dev_popqa_web", "dev_bio", "dev_nq")
ANSWERS = ("popqa_dev", "covidqa_dev")
SQUAD_QUESTIONS = 100
Floats = NDArray[np.float64]
Scorer = Callable[[str, Sequence[Pair]], Mapping[str, Floats]]
"""Scores the texts of one question, under one or several names."""


def main() -> None:
    """Score every set and print one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--reader", default="reader", help="`reader`, or the folder of one")
    parser.add_argument("--limit", type=int, help="use only the first questions of each set")
    parser.add_argument("--sets", nargs="*", default=[], help="names of sets to take")
    parser.add_argument("--only-reader", action="store_true", help="leave today's out")
    given = parser.parse_args()
    scorers = [] if given.only_reader else [today()]
    scorers.append(reading(given.reader))
    print("| set | texts | AUC (best text right, one of the best three) |\n|---|---|---|")
    for name, pairs in sets(given.data).items():
        if given.sets and name not in given.sets:
            continue
        groups = list(by_question(pairs).items())[: given.limit]
        found: dict[str, list[float]] = defaultdict(list)
        for question, texts in groups:
            for scorer in scorers:
                for key, scores in scorer(question, texts).items():
                    found[key] += scores.tolist()
        chosen = [pair for _, texts in groups for pair in texts]
        cells = ", ".join(f"{key} {quality(chosen, scores)}" for key, scores in found.items())
        print(f"| {name} | {len(chosen)} | {cells} |", flush=True)


def sets(data: Path) -> dict[str, list[Pair]]:
    """Return every set, and those of entities and answers without their titles."""
    found = {name: read(data / f"evaluator/{name}.jsonl").pairs for name in PAIRS}
    found |= {name: read(data / f"qa/{name}.jsonl").pairs for name in ANSWERS}
    found["squad_dev"] = squad(data / "reading/squad_dev.jsonl")
    found["squad2"] = look_alikes(data / "reading/squad2_unanswerable.jsonl")
    for name in ("dev_popqa_retr", "dev_bio", "popqa_dev", "covidqa_dev"):
        found[f"{name}, no titles"] = untitled(found[name])
    return found


def squad(path: Path) -> list[Pair]:
    """Return questions with all the paragraphs of their article."""
    rows = read_objects(path)
    asked = [(row, question["question"]) for row in rows for question in row["questions"]]
    drawn = random.Random(0).sample(asked, SQUAD_QUESTIONS)  # noqa: S311 - a sample
    return [
        Pair(question, other["title"], other["text"], float(other is row))
        for row, question in drawn
        for other in rows
        if other["title"] == row["title"]
    ]


def look_alikes(path: Path) -> list[Pair]:
    """Return questions with the one paragraph that answers them, or only looks as if it did."""
    rows = read_objects(path)
    return [
        Pair(question["question"], row["title"], row["text"], float(bool(question["answers"])))
        for row in rows
        if row["title"] in HELD_OUT
        for question in row["questions"]
    ]


def today() -> Scorer:
    """Return the shipped evaluator."""
    evaluator = load_evaluator()

    def scores(question: str, pairs: Sequence[Pair]) -> Mapping[str, Floats]:
        texts = [with_title(pair.title, pair.text) for pair in pairs]
        return {"today": np.array(evaluator.score(question, texts))}

    return scores


def reading(name: str) -> Scorer:
    """Return a reader: its grade, and the outputs that it blends."""
    reader = load(name)

    def scores(question: str, pairs: Sequence[Pair]) -> Mapping[str, Floats]:
        views = reader.model.views(question, [Passage(pair.title, pair.text) for pair in pairs])
        signals = np.array([max(v.signals.tolist() for v in found) for found in views])
        grades = np.array([max(reader.model.grade(v) for v in found) for found in views])
        return {"grade": grades, "entity": signals[:, 0], "answer": signals[:, 1]}

    return scores


def quality(pairs: Sequence[Pair], scores: Sequence[float]) -> str:
    """Return the area, and how often the best text, or one of the best three, is right.

    Only questions with a right text count in the two shares.
    """
    area = auc([pair.positive for pair in pairs], list(scores))
    groups: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for pair, score in zip(pairs, scores, strict=True):
        groups[pair.question].append((score, pair.positive))
    able = [group for group in groups.values() if any(positive for _, positive in group)]
    if max(map(len, able)) == 1:
        return f"{area:.3f}"
    ordered = [[positive for _, positive in sorted(group, reverse=True)] for group in able]
    first, third = (100 * sum(any(one[:n]) for one in ordered) / len(able) for n in (1, 3))
    return f"{area:.3f} ({first:.0f} %, {third:.0f} %)"


if __name__ == "__main__":
    main()
