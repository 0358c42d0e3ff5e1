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

from crag.answering.support import degree_of, is_quoted
from crag.correction.strips import LOWEST, decompose
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
from crag.reflection.backends.candidates import candidate_of, nothing, prose, shortened
from crag.reflection.driver import spend
from crag.reflection_tokens import RELEVANCE, RETRIEVAL, RETRIEVE, SUPPORT, UTILITY, without_tokens
from crag.runtime.calls import judge_passages
from crag.state import Ending, Source, Strip
from crag.text.words import names_lacking

_logger = logging.getLogger(__name__)

_LONGEST_DOCUMENT = 300
"""Words; a chunk of the index has about 170."""
_REMEMBERED = 16
"""Sets of passages: a long answer asks for the same set at each segment and hypothesis."""
_LEAST = 1e-6
"""A degree of 0 has no logarithm."""


class _Reading(NamedTuple):
    """A passage, its score, and what is quoted from it, in the order of its sentences."""

    passage: Passage
    score: float
    quotations: list[Quotation]


class EmbeddedReflection:
    """Stand in for a reflecting model with an evaluator and a quoter; the default without a model.

    - Decision: always ``[Retrieval]``, since there is nothing else to answer from.
    - Text: what the quoter quotes from the passage. Short form takes what fits; a segment of long
      form is the best sentence that was not given yet, and the text ends when none is left.
    - IsRel: the evaluator's score of question and passage (`crag.answering.support.degree_of`).
    - IsSup: certain, as a quotation is taken from its passage.
    - IsUse: the best quotation's score. The quoter scores on the evaluator's scale.
    - A text is sure if one of its quotations is, and the passage has the names of the question.
    - The mean log-probability, of which exp is the sequence score: the same degree.

    For each prefix the evaluator is asked once for all passages. Readings of a question and a set
    of passages are remembered.
    """

    approximation = "IsRel by the evaluator, answers by quotation, which support themselves"

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
        made: dict[Continuation, Candidate] = {}
        for prefix in dict.fromkeys(continuation.prefix for continuation in continuations):
            passages = [p for other, p in continuations if other == prefix and p is not None]
            said = Passage("", without_tokens(prefix.answered))
            readings = [
                reading._replace(
                    quotations=[q for q in reading.quotations if not is_quoted(q.text, said)]
                )
                for reading in self._remembered(prefix.question, tuple(dict.fromkeys(passages)))
            ]
            every = [quotation.text for reading in readings for quotation in reading.quotations]
            for reading in readings:
                candidate = self._candidate(reading, every, prefix.question, limits)
                made[Continuation(prefix, reading.passage)] = candidate
        return [made.get(continuation) or nothing(None) for continuation in continuations]

    def _readings(self, question: str, passages: Sequence[Passage]) -> list[_Reading]:
        scored = judge_passages(self._evaluator, question, passages, node="reflect")
        spend(scored.usage)
        for problem in scored.events:
            if all(score == LOWEST for score in scored.scores):
                raise ModelError("embedded reflection", "failed", problem["detail"])
            _logger.warning("%s: %s", problem["detail"], problem["fallback"])
        quoted = [
            self._quoter.quote(question, _strips(passage, score)) if passage.text.strip() else []
            for passage, score in zip(passages, scored.scores, strict=True)
        ]
        return list(map(_Reading, passages, scored.scores, quoted))

    def _candidate(
        self, reading: _Reading, every: Sequence[str], question: str, limits: SegmentLimits
    ) -> Candidate:
        """Quote the best, and in short form as many of the next best as fit, and judge that."""
        passage, thresholds = reading.passage, self._evaluator.thresholds
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
            ending = "end" if all(is_quoted(other, given) for other in every) else "retrieve"
        best = max((quotation.score for quotation in taken), default=LOWEST)
        useful = degree_of(best, thresholds) if text else 0.0
        is_named = not names_lacking(question, f"{passage.title} {passage.section} {passage.text}")
        return candidate_of(
            text,
            relevance=spread(RELEVANCE, degree_of(reading.score, thresholds)),
            # The grades of IsSup are listed the best first.
            support=spread(SUPPORT[::-1], 1.0) if text else None,
            # A model with the tokens writes IsUse once, where its answer ends.
            utility=spread(UTILITY, useful) if ending == "end" else None,
            mean_log_probability=math.log(max(useful, _LEAST)),
            ending=ending,
            sure=is_named and (not taken or any(quotation.sure for quotation in taken)),
            quoted=is_named,
        )


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
