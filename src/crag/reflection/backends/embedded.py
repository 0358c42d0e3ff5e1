"""Reflection without any model: the evaluator judges, and answers are quotations.

Critiques are made of scores and words. A degree of 0 to 1 is spread over the grades of a group as a
binomial distribution, because the scores of Self-RAG (IsSup with weights 0, 0.5, 1; IsUse with -1
to 1) give exactly that degree back.
"""

import logging
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from crag.answering.support import coverage, degree_of, is_quoted
from crag.correction.scoring import LOWEST
from crag.correction.strips import decompose
from crag.errors import ModelError
from crag.events import event
from crag.parts import (
    Candidate,
    Continuation,
    Decision,
    Evaluator,
    Passage,
    Prefix,
    Probabilities,
    Quotation,
    Quoter,
    SegmentLimits,
)
from crag.reflection.backends.candidates import nothing, prose, shortened, written
from crag.reflection.spending import spend
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
    without_tokens,
)
from crag.runtime.attempt import Attempt
from crag.runtime.evaluator_calls import score_passages
from crag.state import Ending, Source, Strip
from crag.text.words import names_lacking

logger = logging.getLogger(__name__)

_NAME = "embedded reflection"
_LONGEST_DOCUMENT = 300
"""Words; a chunk of the index has about 170."""
_REMEMBERED = 16
"""Sets of passages: a long answer asks for the same set at each segment and hypothesis."""
_LEAST = 1e-6
"""A degree of 0 has no logarithm."""


class EmbeddedReflection:
    """Stand in for a reflecting model with an evaluator and a quoter; the default without a model.

    - Decision: always ``[Retrieval]``, since there is nothing else to answer from.
    - Text: what the quoter quotes from the passage. Short form takes what fits; a segment of long
      form is the best sentence that was not given yet, and the text ends when none is left.
    - IsRel: the evaluator's score of question and passage (`crag.answering.support.degree_of`).
    - IsSup: certain for sentences that occur in the passage. For any other text it is the share of
      its words that the passage holds, times the evaluator's degree with the text as the question.
    - IsUse: the best quotation's score. The quoter scores on the evaluator's scale.
    - A text is sure if one of its quotations is, and the passage has the names of the question.
    - The mean log-probability, of which exp is the sequence score: the same degree.

    For each prefix the evaluator is asked once for all passages (IsRel) and, since it takes one
    question at a time, once for each different text that is not quoted word by word (IsSup). The
    quoter is asked once for each passage, and does not report what it asks the evaluator. Readings
    of a question and a set of passages are remembered.
    """

    approximation = "IsRel by the evaluator, answers by quotation, IsSup by their words"

    def __init__(self, evaluator: Evaluator, quoter: Quoter) -> None:
        self._evaluator = evaluator
        self._quoter = quoter
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._readings)

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Retrieve, with probability 1."""
        shares = {NO_RETRIEVAL: 0.0, RETRIEVAL: 1.0, CONTINUE: 0.0}
        return [Decision(shares, RETRIEVAL) for _ in prefixes]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Quote and judge each passage; without a passage there is no text.

        Whether more is left to say depends on the passages of the same prefix.

        Raises:
            ModelError: the quoter failed, or the evaluator judged nothing.
        """
        asked: dict[Prefix, dict[Passage, None]] = {}
        for prefix, passage in continuations:
            different = asked.setdefault(prefix, {})
            if passage is not None:
                different[passage] = None
        made = {prefix: self._after(prefix, tuple(each), limits) for prefix, each in asked.items()}
        return [
            nothing(None) if passage is None else made[prefix][passage]
            for prefix, passage in continuations
        ]

    def _after(
        self, prefix: Prefix, passages: tuple[Passage, ...], limits: SegmentLimits
    ) -> dict[Passage, Candidate]:
        readings = [
            reading.after(prefix) for reading in self._remembered(prefix.question, passages)
        ]
        drafts = [_draft(reading, readings, limits) for reading in readings]
        supported = self._supported(drafts)
        return {
            draft.passage: self._candidate(draft, degree, prefix.question)
            for draft, degree in zip(drafts, supported, strict=True)
        }

    def _readings(self, question: str, passages: Sequence[Passage]) -> "list[_ScoredPassage]":
        scores = self._scores(question, passages)
        return [
            _ScoredPassage(passage, score, tuple(self._quotations(question, passage, score)))
            for passage, score in zip(passages, scores, strict=True)
        ]

    def _scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        scored = score_passages(self._evaluator, question, passages, node="reflect")
        spend(scored.usage)
        for problem in scored.events:
            if all(score == LOWEST for score in scored.scores):
                raise ModelError(_NAME, "failed", problem["detail"])
            logger.warning("%s: %s", problem["detail"], problem["fallback"])
        return scored.scores

    def _quotations(self, question: str, passage: Passage, score: float) -> list[Quotation]:
        if not passage.text.strip():
            return []
        quotations: list[Quotation] = []
        with Attempt("quoter") as attempt:
            quotations = self._quoter.quote(question, _strips(passage, score))
        if attempt.error is not None:
            described = event("evaluator_failed", "reflect", attempt.error)["detail"]
            raise ModelError(_NAME, "failed", described)
        return quotations

    def _supported(self, drafts: "Sequence[_Draft]") -> list[float]:
        """Return the degree to which each text is supported by its passage."""
        shares = {
            (draft.text, draft.passage): coverage(draft.text, draft.passage)
            for draft in drafts
            if draft.text and not is_quoted(draft.text, draft.passage)
        }
        for text in dict.fromkeys(text for text, _ in shares):
            passages = [passage for said, passage in shares if said == text]
            for passage, score in zip(passages, self._scores(text, passages), strict=True):
                shares[text, passage] *= degree_of(score, self._evaluator.thresholds)
        return [shares.get((draft.text, draft.passage), 1.0) for draft in drafts]

    def _candidate(self, draft: "_Draft", supported: float, question: str) -> Candidate:
        thresholds = self._evaluator.thresholds
        useful = degree_of(draft.best, thresholds) if draft.text else 0.0
        relevant = relevance(degree_of(draft.score, thresholds))
        supports = support(supported) if draft.text else None
        passage = draft.passage
        about = f"{passage.title} {passage.section} {passage.text}"
        is_named = not names_lacking(question, about)
        # A model with the tokens writes IsUse once, where its answer ends.
        uses = utility(useful) if draft.ending == "end" else None
        return Candidate(
            text=written(draft.text, relevance=relevant, support=supports, utility=uses),
            relevance=relevant,
            support=supports,
            utility=uses,
            mean_log_probability=math.log(max(useful, _LEAST)),
            tokens=len(draft.text.split()),
            ending=draft.ending,
            sure=draft.sure and is_named,
            quotation_score=draft.best if is_named else None,
        )


class _ScoredPassage(NamedTuple):
    """A passage, its score, and what is quoted from it, in the order of its sentences."""

    passage: Passage
    score: float
    quotations: tuple[Quotation, ...]

    def after(self, prefix: Prefix) -> "_ScoredPassage":
        """Leave out quotations that the answer contains already."""
        said = Passage("", without_tokens(prefix.answered))
        fresh = (quoted for quoted in self.quotations if not is_quoted(quoted.text, said))
        return self._replace(quotations=tuple(fresh))


class _Draft(NamedTuple):
    """A text that is not judged yet; `best` is the score of its best quotation."""

    passage: Passage
    score: float
    text: str
    best: float
    sure: bool
    ending: Ending


def _draft(
    reading: _ScoredPassage, readings: Sequence[_ScoredPassage], limits: SegmentLimits
) -> _Draft:
    quoted = _fitting(reading.quotations, limits)
    best = max((quotation.score for quotation in quoted), default=LOWEST)
    text, is_cut = shortened(" ".join(prose(quotation.text) for quotation in quoted), limits)
    ending: Ending = "end"
    if is_cut:
        ending = "length"
    elif text and not limits.whole_answer:
        given, every = Passage("", text), (one for each in readings for one in each.quotations)
        if any(not is_quoted(quotation.text, given) for quotation in every):
            ending = "retrieve"
    sure = any(quotation.sure for quotation in quoted) or not quoted
    return _Draft(reading.passage, reading.score, text, best, sure, ending)


def _fitting(quotations: Sequence[Quotation], limits: SegmentLimits) -> list[Quotation]:
    """Return the best quotation, and in short form as many of the next best as fit, in order."""
    ranked = sorted(quotations, key=lambda quotation: -quotation.score)
    taken, words = ranked[:1], sum(len(quoted.text.split()) for quoted in ranked[:1])
    for quoted in ranked[1:] if limits.whole_answer else []:
        words += len(quoted.text.split())
        if words <= limits.max_tokens:
            taken.append(quoted)
    return [quoted for quoted in quotations if quoted in taken]


def _strips(passage: Passage, score: float) -> list[Strip]:
    """Return a passage as strips for the quoter.

    Knowledge that was put together holds strips from several places, which say nothing about each
    other, so a passage of more words than a document has is cut into strips.
    """
    source = Source(id="passage", title=passage.title, url="", position="")
    is_long = len(passage.text.split()) > _LONGEST_DOCUMENT
    texts = decompose(passage.text) if is_long else [passage.text]
    return [
        Strip(text=t, kind="document", source=source, score=score, kept=True, reason="")
        for t in texts
    ]


def relevance(degree: float) -> Probabilities:
    """Return IsRel for a passage that is relevant to this degree."""
    return {IRRELEVANT: 1 - degree, RELEVANT: degree}


def support(degree: float) -> Probabilities:
    """Return IsSup: full support has the square of the degree, and s(IsSup) is the degree."""
    return _spread((NO_SUPPORT, PARTIALLY, FULLY), degree)


def utility(degree: float) -> Probabilities:
    """Return IsUse: the expected grade is 1 + 4 times the degree, s(IsUse) twice it less 1."""
    return _spread(UTILITY, degree)


def _spread(grades: Sequence[str], degree: float) -> Probabilities:
    most = len(grades) - 1
    return {
        token: math.comb(most, grade) * degree**grade * (1 - degree) ** (most - grade)
        for grade, token in enumerate(grades)
    }
