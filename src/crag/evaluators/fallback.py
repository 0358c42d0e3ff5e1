"""An evaluator in the place of another one that failed."""

import threading
from collections.abc import Sequence

from crag.correction.scoring import LOWEST, split_title
from crag.events import note
from crag.parts import Evaluator, Passage, ReadingEvaluator, is_reading
from crag.reading import Reading
from crag.runtime.attempt import Attempt
from crag.runtime.evaluator_calls import scores_of
from crag.runtime.replies import readings_of, scores_of_reply, thresholds_of
from crag.state import Thresholds
from crag.text.language import languages_of


def with_fallback(first: Evaluator, second: Evaluator, named: str) -> Evaluator:
    """Return an evaluator that asks `second`, called `named`, whenever `first` fails.

    It reads if both do; otherwise it only scores.
    """
    if is_reading(first) and is_reading(second):
        return ReaderWithFallback(first, second, named)
    return EvaluatorWithFallback(first, second, named)


class EvaluatorWithFallback:
    """Judge by one evaluator or, where that fails, by another one; each time this is noted.

    Thresholds and languages are those of the one that judged last in this thread, so that they
    belong to its scores. Thread-safe, as both are.
    """

    def __init__(self, first: Evaluator, second: Evaluator, named: str) -> None:
        self._first, self._second, self._named = first, second, named
        self._judged = threading.local()

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds of the evaluator that judged last in this thread."""
        with Attempt("evaluator") as attempt:
            return thresholds_of(self._last())
        self._replace(attempt.error)
        return self._second.thresholds

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the same evaluator reads; empty if unknown."""
        return frozenset(languages_of(self._last()))

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text; ``title // text`` is read by `split_title`."""
        return self.score_passages(question, [split_title(text) for text in texts])

    def score_passages(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return one score for each passage, all by the same evaluator."""
        with Attempt("evaluator") as attempt:
            scores = scores_of_reply(scores_of(self._first, question, passages), len(passages))
            self._judged.last = self._first
            return scores
        self._replace(attempt.error)
        return scores_of(self._second, question, passages)

    def _last(self) -> Evaluator:
        last: Evaluator = getattr(self._judged, "last", self._first)
        return last

    def _replace(self, error: Exception | None) -> None:
        note("evaluator_replaced", error, f"the evaluator {self._named!r} judges")
        self._judged.last = self._second


class ReaderWithFallback(EvaluatorWithFallback):
    """An `EvaluatorWithFallback` of two evaluators that read."""

    def __init__(self, first: ReadingEvaluator, second: ReadingEvaluator, named: str) -> None:
        super().__init__(first, second, named)
        self._readers = first, second

    @property
    def quote_threshold(self) -> float:
        """That of the evaluator that judged last in this thread."""
        first, second = self._readers
        if self._last() is second:
            return second.quote_threshold
        with Attempt("evaluator") as attempt:
            return first.quote_threshold
        self._replace(attempt.error)
        return second.quote_threshold

    @property
    def closest_threshold(self) -> float:
        """That of the evaluator that judged last in this thread; -1.0 where it names none."""
        closest = LOWEST
        with Attempt("evaluator"):
            judged = self._readers[self._last() is self._readers[1]]
            closest = float(getattr(judged, "closest_threshold", LOWEST))
        return closest  # noqa: RET504 - an attempt that fails leaves the lowest

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, all by the same evaluator."""
        first, second = self._readers
        with Attempt("evaluator") as attempt:
            readings = readings_of(first.read(question, passages), passages)
            self._judged.last = first
            return readings
        self._replace(attempt.error)
        return second.read(question, passages)
