"""The base of evaluators that ask a chat model: bounded concurrency, and failed calls."""

import logging
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from langchain_core.runnables.config import ContextThreadPoolExecutor

from crag.correction.scoring import LOWEST
from crag.errors import EvaluatorError, SettingsError
from crag.events import redact
from crag.state import Thresholds
from crag.text.untrusted import neutral

logger = logging.getLogger(__name__)

LONGEST_TEXT = 8000
"""Characters of a text in a prompt; the rest is cut off."""
_LONGEST_REASON = 300


class PromptedEvaluator(ABC):
    """Judge groups of texts with one model call each, at most `concurrency` of them at a time.

    The limit applies to the whole evaluator, across threads. Calls run in the context of the
    caller, so LangChain's callbacks and tracing see them.
    """

    def __init__(self, thresholds: Thresholds, concurrency: int) -> None:
        if concurrency < 1:
            raise SettingsError("concurrency", concurrency, "at least 1")
        if thresholds["lower"] > thresholds["upper"]:
            raise SettingsError("thresholds", thresholds, "lower must not be above upper")
        self.thresholds = thresholds
        """The given thresholds, or the defaults of the scale, which are not calibrated."""
        self._concurrency = concurrency
        self._slots = threading.BoundedSemaphore(concurrency)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text, in order, or NaN where its call failed.

        An empty text scores -1.0 without a call.

        Raises:
            EvaluatorError: every call failed; the message gives the first reason.
        """
        places = [index for index, text in enumerate(texts) if text.strip()]
        groups = self.groups([texts[index] for index in places])
        judged = self._at_once(question, groups)
        failures = [scores for scores in judged if isinstance(scores, EvaluatorError)]
        if failures and len(failures) == len(groups):
            message = f"the chat model judged none of {len(places)} texts: {failures[0]}"
            raise EvaluatorError(message)
        following = iter(places)
        result = [LOWEST] * len(texts)
        for group, scores in zip(groups, judged, strict=True):
            known = [math.nan] * len(group) if isinstance(scores, EvaluatorError) else scores
            for score in known:
                result[next(following)] = score
        return result

    @abstractmethod
    def groups(self, texts: Sequence[str]) -> list[list[str]]:
        """Split `texts`, none of them empty, into one group for each call, in order."""

    @abstractmethod
    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text of a group, or raise `EvaluatorError`."""

    def _at_once(
        self, question: str, groups: Sequence[Sequence[str]]
    ) -> list[list[float] | EvaluatorError]:
        if not groups:
            return []

        def judged(group: Sequence[str]) -> list[float] | EvaluatorError:
            with self._slots:
                try:
                    return self.judge(question, group)
                except EvaluatorError as error:
                    logger.warning("%d texts could not be judged: %s", len(group), error)
                    return error

        with ContextThreadPoolExecutor(min(self._concurrency, len(groups))) as pool:
            return list(pool.map(judged, list(groups)))


def shown(text: str) -> str:
    """Return the part of a text or question that a prompt contains, neutralised."""
    return neutral(text[:LONGEST_TEXT])


def failure(detail: object) -> EvaluatorError:
    """Return the error that says why there is no score, without any secret, on one line."""
    if isinstance(detail, Exception):
        detail = f"{type(detail).__name__}: {detail}"
    return EvaluatorError(" ".join(redact(str(detail)).split())[:_LONGEST_REASON])
