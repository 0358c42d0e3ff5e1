"""The data of a calibration: labelled texts with their scores, by question."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crag.correction.action import branches
from crag.errors import DataError, EvaluatorError, TrainingError
from crag.models.model_card import DataFile
from crag.papers.evaluator.metrics import Discrimination, discrimination, quality
from crag.papers.evaluator.pairs import LabelRule, Pair, by_question, describe, read_pairs
from crag.papers.evaluator.thresholds import FEWEST, JudgedSet
from crag.parts import Evaluator, Passage
from crag.runtime.evaluator_calls import scores_of
from crag.state import ACTIONS, Action

SURE = 0.001
"""Scores are not calibrated if chance gives an AUC as far from a half more often than this."""
_HALF = 0.5
ProgressCallback = Callable[[int, int, str], None]
"""Called with the questions done, their total and the question."""


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
    pairs = read_pairs(path, labels)
    actions = _actions(path) if labels == "auto" else {}
    questions = [
        Question(question=question, pairs=texts, action=actions.get(question))
        for question, texts in by_question(pairs).items()
    ]
    if actions and any(question.action is None for question in questions):
        raise DataError(path, "some questions have an 'action' and some have none")
    return questions, describe(path, pairs)


def require_both_classes(questions: Sequence[Question]) -> None:
    """Reject data that is too small, or all of one class, before anything is scored.

    Raises:
        TrainingError: fewer than ten questions have a relevant, or an irrelevant, text.
    """
    for positive, name in ((True, "a relevant"), (False, "an irrelevant")):
        count = sum(any(p.positive == positive for p in q.pairs) for q in questions)
        if count < FEWEST:
            message = (
                f"cannot calibrate: {count} of {len(questions)} questions have {name} "
                f"text, and at least {FEWEST} are needed. Label more questions"
            )
            raise TrainingError(message)


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
        found = [float(score) for score in scores_of(evaluator, one.question, passages)]
        if len(found) != len(passages) or not all(map(math.isfinite, found)):
            message = (
                f"the evaluator returned {len(found)} scores, {sum(map(math.isfinite, found))} of "
                f"them finite, for the {len(passages)} texts of the question {one.question!r}"
            )
            raise EvaluatorError(message)
        scores.append(found)
    return Evidence(questions=list(questions), scores=scores)


def measured_quality(evaluator: Evaluator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the quality of an evaluator on labelled pairs, to four decimals."""
    questions = [
        Question(question=question, pairs=texts) for question, texts in by_question(pairs).items()
    ]
    evidence = score_questions(evaluator, questions)
    measured = quality(evidence.pairs, evidence.all_scores)
    return {name: round(value, 4) for name, value in measured.items()}


def require_information(evidence: Evidence) -> Discrimination:
    """Return how well the scores separate relevant texts from others.

    Raises:
        TrainingError: not better than chance, or the wrong way round.
    """
    groups = [n for n, scores in enumerate(evidence.scores) for _ in scores]
    positives = [pair.positive for pair in evidence.pairs]
    found = discrimination(groups, positives, evidence.all_scores)
    said = f"AUC {found.auc:.3f}, 99 % interval {found.low:.3f} to {found.high:.3f}"
    if found.p >= SURE:
        message = (
            f"cannot calibrate: the scores do not separate relevant texts from others ({said};"
            f" by chance with p = {found.p:.3f}). Check the labels, add data, or train an evaluator"
        )
        raise TrainingError(message)
    if found.auc < _HALF:
        message = (
            f"cannot calibrate: relevant texts score lower than others ({said}). "
            "Check whether the labels are the wrong way round"
        )
        raise TrainingError(message)
    return found


def _judged(question: Question, scores: Sequence[float]) -> JudgedSet:
    """Judge by the action, else by the labels; texts tied for the best must all be relevant."""
    best = max(scores)
    if (action := question.action) is not None:
        return JudgedSet(best, action == "correct", "refine" in branches(action), action)
    tied = [p.positive for p, score in zip(question.pairs, scores, strict=True) if score == best]
    usable = any(pair.positive for pair in question.pairs)
    return JudgedSet(best, all(tied), usable, _ideal(question.pairs))


def _ideal(pairs: Sequence[Pair]) -> Action:
    """Judge by the best label: 1 is correct, 0 incorrect, anything between is ambiguous."""
    label = max(pair.label for pair in pairs)
    if label <= 0:
        return "incorrect"
    return "correct" if label >= 1 else "ambiguous"


def _actions(path: Path) -> dict[str, Action]:
    """Return the ideal action of each question that has one; `read_pairs` has checked the rest."""
    found: dict[str, Action] = {}
    if path.suffix.lower() == ".csv":
        return found
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        row = json.loads(line) if line.strip() else {}
        if (action := row.get("action")) is None:
            continue
        if action not in ACTIONS:
            raise DataError(path, f"{action!r} is not an action: {', '.join(ACTIONS)}", number)
        if found.setdefault(row["question"].strip(), action) != action:
            raise DataError(path, "the question has another action further up", number)
    return found
