"""Measure how well evaluators tell useful texts from others, and choose actions (CRAG, Table 4).

    python -m crag.papers.studies.evaluators DATA [--evaluator NAME…] [--limit N]

DATA has labelled pairs in evaluator/ (dev_popqa_retr, dev_popqa_web, dev_bio, dev_nq), and in qa/
QA sets whose documents say whether they hold an answer (popqa_dev, covidqa_dev), or whose questions
have an ideal action (actions_dev). NAME is an evaluator of `CRAG_EVALUATOR`, such as `default`, the
folder of a T5, or `chat-cot`; BM25 and the cosine of question and text stand beside them.
Intervals are 95 % bootstrap intervals over questions.
"""

import argparse
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np

from crag.correction.action import decide
from crag.correction.scoring import with_title
from crag.evaluators import load_evaluator
from crag.factory.parts import choose_model
from crag.models.encoder import packaged_encoder
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
from crag.state import ACTIONS, Action, Thresholds

SETS = (
    "evaluator/dev_popqa_retr", "evaluator/dev_popqa_web", "evaluator/dev_bio", "evaluator/dev_nq",
    "qa/popqa_dev", "qa/covidqa_dev",
)  # fmt: skip
NO_THRESHOLDS = Thresholds(upper=0.0, lower=0.0)


class Scored:
    """An evaluator made of a function, without thresholds of its own."""

    thresholds = NO_THRESHOLDS

    def __init__(self, scores: Callable[[str, list[str]], Sequence[float]]) -> None:
        self._scores = scores

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return what the function returns."""
        return [float(score) for score in self._scores(question, list(texts))]


def by_words(questions: Sequence[Question]) -> Scored:
    """Score by BM25 with the frequencies of all texts of a set."""
    pairs = [pair for one in questions for pair in one.pairs]
    texts = list(dict.fromkeys(with_title(pair.title, pair.text) for pair in pairs))
    index, place = bm25s.BM25(), {text: number for number, text in enumerate(texts)}
    index.index(_words(texts), show_progress=False)

    def shared(question: str, some: list[str]) -> Any:
        return index.get_scores(_words([question])[0])[[place[text] for text in some]]

    return Scored(shared)


def _words(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)


def by_meaning() -> Scored:
    """Score by the cosine of question and whole text."""
    encoder = packaged_encoder()

    def cosines(question: str, texts: list[str]) -> Any:
        return np.array(encoder.embed_documents(texts)) @ np.array(encoder.embed_query(question))

    return Scored(cosines)


def main() -> None:
    """Score every set with every evaluator, and print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--evaluator", nargs="+", default=["default"], help="names or folders")
    parser.add_argument("--limit", type=int, help="use only the first questions of each set")
    given = parser.parse_args()
    logging.getLogger("bm25s").setLevel(logging.WARNING)
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
        for name, evaluator in {**named, "cosine": by_meaning()}.items()
    ]
    rows.append(
        ["BM25", *(_quality(by_words(questions), questions) for questions in sets.values())]
    )
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
    at_zero = "-" if evaluator.thresholds is NO_THRESHOLDS else f"{found['accuracy']:.3f}"
    return f"{found['auc']:.3f} / {at_zero} / {found['top1']:.3f} ({low:.2f} to {high:.2f})"


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
