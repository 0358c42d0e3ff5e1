"""Fit thresholds to an index without labels, by the questions that are made of it.

What each kind of error costs is given; the thresholds are those with the lowest sum. Made questions
score higher than what people ask, so no threshold is raised by them: what they find too high is too
high for people's questions as well, and what they find too low may not be. Thresholds are compared
with those in use on questions that they were not fitted to, and recommended only where the
difference is more than chance.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from crag.correction.action import decide
from crag.correction.evidence import strips_in_context
from crag.correction.provenance import passage_of
from crag.correction.scoring import LOWEST
from crag.errors import TrainingError
from crag.generation import ExtractiveAnswerer
from crag.index import DocumentIndex
from crag.models.model_card import Calibration, DataFile
from crag.papers.training.calibrate import quantiles
from crag.papers.training.evidence import ProgressCallback
from crag.papers.training.made_questions import MadeQuestion, far_questions, holds, questions_of
from crag.papers.training.thresholds import FEWEST, Aim, Costs, Interval, JudgedSet, fit
from crag.parts import Evaluator, Quotation, is_reading
from crag.runtime.evaluator_calls import scores_of
from crag.settings import Settings
from crag.state import ACTIONS, Action

COSTS = Costs(wrong=8, needless=1, discarded=2)
"""Unless others are stated: a wrong sure answer or wrong Correct, a needless Ambiguous, which may
search the web, and an answer withheld."""
_FOLDS = 5
_DRAWS = 2000
_MORE = 3
"""Times as many documents are asked for where some are withheld."""


class Mixture(NamedTuple):
    """Shares of the questions, in any unit; the documentation questions are 102, 30 and 18."""

    answered: float = 68
    near: float = 20
    far: float = 12

    def counts(self, questions: int) -> tuple[int, int, int]:
        """Return how many of each kind that many questions are.

        Raises:
            TrainingError: a share is negative, or too few of them have an answer, or have none.
        """
        total = sum(self)
        if min(self) < 0 or total <= 0:
            raise TrainingError(f"{self} is no mixture: write three shares of at least 0")
        answered, near = (round(questions * share / total) for share in self[:2])
        if min(answered, questions - answered) < FEWEST:
            message = (
                f"of {questions} questions {answered} would have an answer and "
                f"{questions - answered} none, and {FEWEST} of each are needed: ask for more"
            )
            raise TrainingError(message)
        return answered, near, questions - answered - near


class Judged(NamedTuple):
    """What the evaluator says of one question."""

    made: MadeQuestion
    scores: tuple[float, ...]
    """Of the documents."""
    quoted: float
    """Score of the best quotation; the lowest if there is none."""
    right: bool
    """Whether that comes from the section, and holds the sentence, that the question is made of."""

    @property
    def set(self) -> JudgedSet:
        """What the action depends on."""
        answered = self.made.kind == "answered"
        ideal: Action = "correct" if answered else "incorrect"
        return JudgedSet(max(self.scores, default=LOWEST), answered, answered, ideal)


class Limits(NamedTuple):
    """The three thresholds; none for quotations of an evaluator that does not read."""

    upper: float
    lower: float
    sure: float | None


class Effect(NamedTuple):
    """What thresholds do to the questions; counts, and the cost of a hundred questions."""

    correct: int
    """Answered questions judged Correct."""
    discarded: int
    """Answered questions judged Incorrect."""
    wrongly_correct: int
    """Unanswerable questions judged Correct."""
    action_cost: float
    right: int
    """Questions with a sure quotation that is right."""
    wrong: int
    """Answered questions with a sure quotation that is not."""
    false: int
    """Unanswerable questions with a sure quotation."""
    sure_cost: float


class Saving(NamedTuple):
    """What fitted thresholds save of the cost of a hundred questions, left out of the fit."""

    mean: float
    low: float
    high: float
    """95 % interval over resampled questions."""

    @property
    def certain(self) -> bool:
        """Whether it is more than chance."""
        return self.low > 0


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """Thresholds fitted to an index, and whether they are better there than those in use."""

    answered: int
    near: int
    far: int
    left_out: int
    """Questions whose section was not found, or is repeated where it should be missing."""
    costs: Costs
    in_use: Limits
    cheapest: Limits
    """The thresholds with the lowest cost, be they higher than those in use."""
    fitted: Limits
    """The same, but none above that in use."""
    upper_interval: Interval
    """95 % interval of the cheapest one over resampled questions."""
    lower_interval: Interval
    sure_interval: Interval | None
    effect_in_use: Effect
    effect_fitted: Effect
    """On questions that the thresholds were not fitted to, in five parts."""
    action_saving: Saving
    sure_saving: Saving | None
    recommended: Limits
    """Fitted ones where they save something for certain, and else those in use."""
    calibration: Calibration
    """The recommended ones, for the evaluator's card."""

    @property
    def changes(self) -> bool:
        """Whether anything but the thresholds in use is recommended."""
        return self.recommended != self.in_use


def calibrate_on(  # noqa: PLR0913 - what to calibrate, on what, for what
    evaluator: Evaluator,
    index: DocumentIndex,
    *,
    other: DocumentIndex | None = None,
    questions: int = 150,
    mixture: Mixture = Mixture(),  # noqa: B008 - a constant
    costs: Costs = COSTS,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> IndexReport:
    """Make questions of `index`, ask them, and fit the thresholds of `evaluator`; writes nothing.

    Questions without an answer are those whose section is withheld (near), and those made of the
    index `other`, or about everyday things (far).

    Raises:
        TrainingError: too few questions can be made.
        DocumentIndexError: an index cannot be used.
    """
    made = _made(index, other, mixture.counts(questions), seed)
    judged = []
    for done, one in enumerate(made):
        if progress is not None:
            progress(done, len(made), one.question)
        if (found := judge(evaluator, index, one)) is not None:
            judged.append(found)
    return report_of(evaluator, index.location, judged, len(made) - len(judged), costs, seed)


def _made(
    index: DocumentIndex, other: DocumentIndex | None, counts: tuple[int, int, int], seed: int
) -> list[MadeQuestion]:
    answered, near, far = counts
    own = questions_of(index, answered + near, "answered", seed)
    withheld = own[len(own) * answered // (answered + near) :]
    away = questions_of(other, far, "far", seed) if other else far_questions(far, seed)
    kept = own[: len(own) - len(withheld)]
    return [*kept, *(one._replace(kind="near") for one in withheld), *away]


def judge(
    evaluator: Evaluator, index: DocumentIndex, made: MadeQuestion, settings: Settings | None = None
) -> Judged | None:
    """Ask a question without a web search; None if its section is not as it should be.

    That is so if the section is not found, or if what it says is found elsewhere though withheld.
    """
    settings = settings or Settings()
    documents = index.search(made.question, settings.k * (_MORE if made.kind == "near" else 1))
    if made.kind == "near":
        documents = [one for one in documents if not made.is_of(one.metadata)][: settings.k]
        texts = ((one.page_content, str(one.metadata.get("section") or "")) for one in documents)
        if any(made.repeated_in(*text) for text in texts):
            return None
    elif made.kind == "answered" and not any(made.is_of(one.metadata) for one in documents):
        return None
    scores, quoted, source = best_quotation(evaluator, made.question, documents, settings)
    if quoted is None:
        return Judged(made, tuple(scores), LOWEST, right=False)
    own = any(str(one.id) == source and made.is_of(one.metadata) for one in documents)
    holding = not made.sentence or holds(quoted.text, made.sentence)
    right = made.kind == "answered" and own and holding
    return Judged(made, tuple(scores), quoted.score, right)


def best_quotation(
    evaluator: Evaluator, question: str, documents: Sequence[Document], settings: Settings
) -> tuple[list[float], Quotation | None, str]:
    """Return the scores of documents, and what `crag` would quote first, with its document's id.

    Nothing is quoted of an evaluator that does not read.
    """
    passages = [passage_of(document, settings.titles) for document in documents]
    if not is_reading(evaluator):
        return (scores_of(evaluator, question, passages) if passages else []), None, ""
    readings = evaluator.read(question, passages) if passages else []
    strips = strips_in_context(question, documents, readings, settings)
    strips = [one for one in strips if one["kept"]]
    quoter = ExtractiveAnswerer(evaluator, most=1, threshold=LOWEST)
    scores = [reading["score"] for reading in readings]
    for quoted in quoter.quote(question, strips):
        return scores, quoted, strips[quoted.strip]["source"]["id"]
    return scores, None, ""


def _require_enough(judged: Sequence[Judged]) -> None:
    answered = sum(one.made.kind == "answered" for one in judged)
    if min(answered, len(judged) - answered) < FEWEST:
        message = (
            f"cannot calibrate: of this index {answered} questions with an answer could be made "
            f"and {len(judged) - answered} without, and {FEWEST} of each are needed. They are made "
            "of English headings and sentences; index more documents, or label questions"
        )
        raise TrainingError(message)


def limits_of(evaluator: Evaluator) -> Limits:
    """Return the thresholds that an evaluator has."""
    own = evaluator.thresholds
    sure = evaluator.quote_threshold if is_reading(evaluator) else None
    return Limits(own["upper"], own["lower"], sure)


def cheapest_limits(
    judged: Sequence[Judged], costs: Costs, *, reads: bool, seed: int = 0, resamples: int = 1
) -> tuple[Limits, list[Interval]]:
    """Return the cheapest thresholds, and the 95 % interval of each over resampled questions."""
    action = fit([one.set for one in judged], Aim(costs=costs), seed=seed, resamples=resamples)
    upper, lower = action.thresholds["upper"], action.thresholds["lower"]
    intervals = [action.upper_interval, action.lower_interval]
    if not reads:
        return Limits(upper, lower, None), intervals
    # A middle way that costs as much as the worst error is never taken, which leaves one threshold.
    one_threshold = Aim(
        costs=Costs(
            wrong=costs.wrong,
            needless=max(costs.wrong, costs.discarded),
            discarded=costs.discarded,
        )
    )
    quoted = [
        JudgedSet(one.quoted, one.right, one.right, "correct" if one.right else "incorrect")
        for one in judged
    ]
    sure = fit(quoted, one_threshold, seed=seed, resamples=resamples)
    return Limits(upper, lower, sure.thresholds["upper"]), [*intervals, sure.upper_interval]


def report_of(  # noqa: PLR0913, PLR0917 - what has been found
    evaluator: Evaluator,
    location: str,
    judged: Sequence[Judged],
    left_out: int,
    costs: Costs,
    seed: int,
) -> IndexReport:
    """Fit thresholds to what was judged, and compare them with those in use.

    Raises:
        TrainingError: there is too little of it.
    """
    _require_enough(judged)
    in_use, reads = limits_of(evaluator), is_reading(evaluator)
    cheapest, intervals = cheapest_limits(judged, costs, reads=reads, seed=seed, resamples=1000)
    fitted = _not_above(cheapest, in_use)
    before = [in_use] * len(judged)
    after = [_not_above(one, in_use) for one in _of_others(judged, costs, reads=reads)]
    action_saving = _saving(
        [_action_cost(*one, costs) for one in zip(judged, before, strict=True)],
        [_action_cost(*one, costs) for one in zip(judged, after, strict=True)],
        seed,
    )
    sure_saving = (
        _saving(
            [_sure_cost(*one, costs) for one in zip(judged, before, strict=True)],
            [_sure_cost(*one, costs) for one in zip(judged, after, strict=True)],
            seed,
        )
        if reads
        else None
    )
    recommended = in_use
    if action_saving.certain:
        recommended = recommended._replace(upper=fitted.upper, lower=fitted.lower)
    if sure_saving and sure_saving.certain:
        recommended = recommended._replace(sure=fitted.sure)
    kinds = [one.made.kind for one in judged]
    return IndexReport(
        answered=kinds.count("answered"),
        near=kinds.count("near"),
        far=kinds.count("far"),
        left_out=left_out,
        costs=costs,
        in_use=in_use,
        cheapest=cheapest,
        fitted=fitted,
        upper_interval=intervals[0],
        lower_interval=intervals[1],
        sure_interval=intervals[2] if reads else None,
        effect_in_use=effect(judged, before, costs),
        effect_fitted=effect(judged, after, costs),
        action_saving=action_saving,
        sure_saving=sure_saving,
        recommended=recommended,
        calibration=_calibration(evaluator, location, judged, costs, recommended),
    )


def _of_others(judged: Sequence[Judged], costs: Costs, *, reads: bool) -> list[Limits]:
    """Return for each question the thresholds fitted to the other parts; a section is in one."""
    places = [(one.made.source, one.made.section or one.made.question) for one in judged]
    parts = {place: number % _FOLDS for number, place in enumerate(dict.fromkeys(places))}
    by_part = []
    for part in range(_FOLDS):
        rest = [one for one, place in zip(judged, places, strict=True) if parts[place] != part]
        by_part.append(cheapest_limits(rest, costs, reads=reads)[0])
    return [by_part[parts[place]] for place in places]


def _not_above(found: Limits, in_use: Limits) -> Limits:
    """Return the lower one of each threshold."""
    sure = None if found.sure is None or in_use.sure is None else min(found.sure, in_use.sure)
    return Limits(min(found.upper, in_use.upper), min(found.lower, in_use.lower), sure)


def _action_cost(one: Judged, limits: Limits, costs: Costs) -> float:
    chosen = decide([one.set.best], limits.upper, limits.lower)
    return float(costs.matrix()[ACTIONS.index(chosen), ACTIONS.index(one.set.ideal)])


def _sure_cost(one: Judged, limits: Limits, costs: Costs) -> float:
    if limits.sure is not None and one.quoted >= limits.sure:
        return 0.0 if one.right else costs.wrong
    return costs.discarded if one.right else 0.0


def _saving(before: Sequence[float], after: Sequence[float], seed: int) -> Saving:
    saved = 100 * (np.asarray(before) - np.asarray(after))
    drawn = np.random.default_rng(seed).integers(len(saved), size=(_DRAWS, len(saved)))
    low, high = np.quantile(saved[drawn].mean(axis=1), [0.025, 0.975])
    return Saving(float(saved.mean()), float(low), float(high))


def effect(judged: Sequence[Judged], limits: Sequence[Limits], costs: Costs) -> Effect:
    """Return what thresholds, one set for each question, do."""
    actions, sure = [], []
    for one, at in zip(judged, limits, strict=True):
        actions.append((decide([one.set.best], at.upper, at.lower), one.set.right))
        said = at.sure is not None and one.quoted >= at.sure
        sure.append((said, one.right, one.made.kind == "answered"))
    pairs = list(zip(judged, limits, strict=True))
    return Effect(
        correct=actions.count(("correct", True)),
        discarded=actions.count(("incorrect", True)),
        wrongly_correct=actions.count(("correct", False)),
        action_cost=_hundred(_action_cost(*pair, costs) for pair in pairs),
        right=sum(said and right for said, right, _ in sure),
        wrong=sum(said and not right and answered for said, right, answered in sure),
        false=sum(said and not answered for said, _, answered in sure),
        sure_cost=_hundred(_sure_cost(*pair, costs) for pair in pairs),
    )


def _hundred(costs: Iterator[float]) -> float:
    every = list(costs)
    return 100 * sum(every) / len(every)


def _calibration(
    evaluator: Evaluator,
    location: str,
    judged: Sequence[Judged],
    costs: Costs,
    limits: Limits,
) -> Calibration:
    card: Any = getattr(evaluator, "card", None)
    own = card.calibration if card is not None else None
    scores = list(chain.from_iterable(one.scores for one in judged))
    asked = "\n".join(one.made.question for one in judged)
    data = DataFile(
        name=f"questions made of {location}",
        sha256=hashlib.sha256(asked.encode()).hexdigest(),
        pairs=len(scores),
        positives=sum(one.set.right for one in judged),
    )
    return Calibration(
        upper=limits.upper,
        lower=limits.lower,
        quote=limits.sure,
        closest=own.closest if own else None,
        aim=(
            f"lowest cost on questions made of the index, with a wrong sure answer at "
            f"{costs.wrong:g}, a needless Ambiguous at {costs.needless:g} and an answer withheld "
            f"at {costs.discarded:g}; none is raised, and what does not change for certain is kept"
        ),
        questions=len(judged),
        data=[data],
        quantiles=quantiles(scores),
    )
