"""Labelled texts with the scores of an evaluator, by question, and how good these are."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crag.correction.action import branches
from crag.errors import DataError, EvaluatorError
from crag.models.model_card import DataFile
from crag.papers.evaluator.pairs import LabelRule, Pair, by_question, describe, read_labelled
from crag.parts import Evaluator, Passage
from crag.runtime.calls import readings_of
from crag.state import ACTIONS, Action

ProgressCallback = Callable[[int, int, str], None]
"""Called with the questions done, their total and the question."""


class JudgedSet(NamedTuple):
    """The facts about one question's texts that the action depends on."""

    best: float
    """The largest score."""
    right: bool
    """Whether Correct would be right, because the best text is relevant."""
    usable: bool
    """Whether Incorrect would discard something, because any text is relevant."""
    ideal: Action


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of one file, with its texts."""

    question: str
    pairs: list[Pair]
    action: Action | None = None
    """The ideal action, if the data gives it."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Questions, and one score for each of their texts, in order."""

    questions: list[Question]
    scores: list[list[float]]

    @property
    def pairs(self) -> list[Pair]:
        """All texts, in the order of `all_scores`."""
        return [pair for question in self.questions for pair in question.pairs]

    @property
    def all_scores(self) -> list[float]:
        """The scores of all texts."""
        return [score for scores in self.scores for score in scores]

    @property
    def sets(self) -> list[JudgedSet]:
        """The evidence for the action, one entry per question."""
        return [_judged(*one) for one in zip(self.questions, self.scores, strict=True)]


def read_questions(path: Path, labels: LabelRule) -> tuple[list[Question], DataFile]:
    """Read one file of pairs or a QA set; the rule `auto` also uses each row's `action`.

    Raises:
        DataError: the file cannot be used, or gives the action of some questions only.
    """
    pairs, actions = read_labelled(path, labels)
    if labels != "auto":
        actions = {}
    questions = [
        Question(question=question, pairs=texts, action=actions.get(question))
        for question, texts in by_question(pairs).items()
    ]
    if actions and any(question.action is None for question in questions):
        raise DataError(path, "some questions have an 'action' and some have none")
    return questions, describe(path, pairs)


def score_questions(
    evaluator: Evaluator, questions: Sequence[Question], progress: ProgressCallback | None = None
) -> Evidence:
    """Score the texts of each question in one call of the evaluator.

    Raises:
        EvaluatorError: it does not return one finite score for each text.
    """
    scores = []
    for done, one in enumerate(questions):
        if progress is not None:
            progress(done, len(questions), one.question)
        passages = [Passage(pair.title, pair.text) for pair in one.pairs]
        readings = readings_of(evaluator, one.question, passages)
        found = [reading["score"] for reading in readings]
        if not all(map(math.isfinite, found)):
            message = f"the evaluator returned {found} for the question {one.question!r}"
            raise EvaluatorError(message)
        scores.append(found)
    return Evidence(questions=list(questions), scores=scores)


def measured_quality(evaluator: Evaluator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the quality of an evaluator on labelled pairs, to four decimals."""
    questions = [Question(question=one, pairs=texts) for one, texts in by_question(pairs).items()]
    evidence = score_questions(evaluator, questions)
    measured = quality(evidence.pairs, evidence.all_scores)
    return {name: round(value, 4) for name, value in measured.items()}


def _judged(question: Question, scores: Sequence[float]) -> JudgedSet:
    """Judge by the action, else by the labels; texts tied for the best must all be relevant."""
    best = max(scores)
    if (action := question.action) is not None:
        return JudgedSet(best, action == "correct", "refine" in branches(action), action)
    tied = [p.positive for p, score in zip(question.pairs, scores, strict=True) if score == best]
    usable = any(pair.positive for pair in question.pairs)
    label = max(pair.label for pair in question.pairs)
    ideal: Action = "incorrect" if label <= 0 else "correct" if label >= 1 else "ambiguous"
    return JudgedSet(best, all(tied), usable, ideal)


def quality(pairs: Sequence[Pair], scores: Sequence[float]) -> dict[str, float]:
    """Return `auc`, `accuracy` (two-way, at 0) and `top1`, each in [0, 1].

    Undefined metrics are omitted: the AUC of one class, or top-1 without a question that has both a
    relevant and an irrelevant text.
    """
    from sklearn.metrics import roc_auc_score

    positives = [pair.positive for pair in pairs]
    found = {
        "auc": float(roc_auc_score(positives, scores)) if len(set(positives)) > 1 else None,
        "accuracy": float(np.mean((np.asarray(scores) >= 0) == np.asarray(positives))),
        "top1": top1(pairs, scores),
    }
    return {name: value for name, value in found.items() if value is not None}


def top1(pairs: Sequence[Pair], scores: Sequence[float]) -> float | None:
    """Return the share of questions whose best-scored text is relevant.

    Only questions with a relevant and an irrelevant text count. If texts tie for the best score,
    the share of relevant ones counts, as if one were chosen at random.
    """
    score_of = dict(zip(pairs, scores, strict=True))
    shares = []
    for texts in by_question(pairs).values():
        if len({pair.positive for pair in texts}) > 1:
            best = max(score_of[pair] for pair in texts)
            tied = [pair.positive for pair in texts if score_of[pair] == best]
            shares.append(sum(tied) / len(tied))
    return math.fsum(shares) / len(shares) if shares else None


def confusion(ideal: Sequence[Action], chosen: Sequence[Action]) -> dict[Action, dict[Action, int]]:
    """Count the sets by their ideal action (outer) and the chosen one (inner)."""
    table: dict[Action, dict[Action, int]] = {row: dict.fromkeys(ACTIONS, 0) for row in ACTIONS}
    for row, column in zip(ideal, chosen, strict=True):
        table[row][column] += 1
    return table
