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
from crag.reflection_tokens import RELEVANCE, RETRIEVAL, RETRIEVE, SUPPORT, UTILITY, without_tokens
from crag.runtime.evaluator_calls import score_passages
from crag.state import Ending, Source, Strip
from crag.text.words import names_lacking

logger = logging.getLogger(__name__)

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
    question at a time, once for each different text that is not quoted word by word (IsSup).
    Readings of a question and a set of passages are remembered.
    """

    approximation = "IsRel by the evaluator, answers by quotation, IsSup by their words"

    def __init__(self, evaluator: Evaluator, quoter: Quoter) -> None:
        self._evaluator, self._quoter = evaluator, quoter
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._readings)

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Retrieve, with probability 1."""
        shares = {token: float(token == RETRIEVAL) for token in RETRIEVE}
        return [Decision(shares, RETRIEVAL) for _ in prefixes]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Quote and judge each passage; without a passage there is no text.

        Whether more is left to say depends on the passages of the same prefix.

        Raises:
            ModelError: the evaluator judged nothing.
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
        said = Passage("", without_tokens(prefix.answered))
        readings: list[_Reading] = []
        for passage, score, quotations in self._remembered(prefix.question, passages):
            fresh = tuple(one for one in quotations if not is_quoted(one.text, said))
            readings.append(_Reading(passage, score, fresh))
        drafts = [_draft(reading, readings, limits) for reading in readings]
        degrees = self._supported(drafts)
        return {
            draft.passage: self._candidate(draft, degree, prefix.question)
            for draft, degree in zip(drafts, degrees, strict=True)
        }

    def _readings(self, question: str, passages: Sequence[Passage]) -> "list[_Reading]":
        scores = self._scores(question, passages)
        return [
            _Reading(passage, score, tuple(self._quoter.quote(question, _strips(passage, score))))
            if passage.text.strip()
            else _Reading(passage, score, ())
            for passage, score in zip(passages, scores, strict=True)
        ]

    def _scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        scored = score_passages(self._evaluator, question, passages, node="reflect")
        spend(scored.usage)
        for problem in scored.events:
            if all(score == LOWEST for score in scored.found):
                raise ModelError("embedded reflection", "failed", problem["detail"])
            logger.warning("%s: %s", problem["detail"], problem["fallback"])
        return scored.found

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
        thresholds, passage = self._evaluator.thresholds, draft.passage
        useful = degree_of(draft.best, thresholds) if draft.text else 0.0
        relevance = spread(RELEVANCE, degree_of(draft.score, thresholds))
        # The grades of IsSup are listed the best first.
        support = spread(SUPPORT[::-1], supported) if draft.text else None
        about = f"{passage.title} {passage.section} {passage.text}"
        is_named = not names_lacking(question, about)
        # A model with the tokens writes IsUse once, where its answer ends.
        utility = spread(UTILITY, useful) if draft.ending == "end" else None
        return Candidate(
            text=written(draft.text, relevance=relevance, support=support, utility=utility),
            relevance=relevance,
            support=support,
            utility=utility,
            mean_log_probability=math.log(max(useful, _LEAST)),
            tokens=len(draft.text.split()),
            ending=draft.ending,
            sure=draft.sure and is_named,
            quotation_score=draft.best if is_named else None,
        )


class _Reading(NamedTuple):
    """A passage, its score, and what is quoted from it, in the order of its sentences."""

    passage: Passage
    score: float
    quotations: tuple[Quotation, ...]


class _Draft(NamedTuple):
    """A text that is not judged yet; `best` is the score of its best quotation."""

    passage: Passage
    score: float
    text: str
    best: float
    sure: bool
    ending: Ending


def _draft(reading: _Reading, readings: Sequence[_Reading], limits: SegmentLimits) -> _Draft:
    """Take the best quotation, and in short form as many of the next best as fit, in order."""
    ranked = sorted(reading.quotations, key=lambda quotation: -quotation.score)
    taken, words = ranked[:1], sum(len(quoted.text.split()) for quoted in ranked[:1])
    for quoted in ranked[1:] if limits.whole_answer else []:
        words += len(quoted.text.split())
        if words <= limits.max_tokens:
            taken.append(quoted)
    quoted_texts = [prose(quoted.text) for quoted in reading.quotations if quoted in taken]
    text, is_cut = shortened(" ".join(quoted_texts), limits)
    ending: Ending = "length" if is_cut else "end"
    if text and not is_cut and not limits.whole_answer:
        given = Passage("", text)
        every = (one for each in readings for one in each.quotations)
        if any(not is_quoted(quotation.text, given) for quotation in every):
            ending = "retrieve"
    best = max((quotation.score for quotation in taken), default=LOWEST)
    sure = any(quotation.sure for quotation in taken) or not taken
    return _Draft(reading.passage, reading.score, text, best, sure, ending)


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


def spread(grades: Sequence[str], degree: float) -> Probabilities:
    """Spread a degree of 0 to 1 over the grades of a group, the lowest first.

    IsRel: the share of Relevant is the degree. IsSup: full support has its square, and s(IsSup) is
    the degree. IsUse: the expected grade is 1 + 4 times the degree, s(IsUse) twice it less 1.
    """
    most = len(grades) - 1
    return {
        token: math.comb(most, grade) * degree**grade * (1 - degree) ** (most - grade)
        for grade, token in enumerate(grades)
    }
