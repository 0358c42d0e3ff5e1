"""Chat models that say yes or no to each text: what CRAG compares its evaluator with (Table 4)."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.constants import TAG_NOSTREAM

from crag.answering.model_calls import ask
from crag.correction.strips import LOWEST
from crag.errors import EvaluatorError
from crag.evaluators.chat import LONGEST_TEXT
from crag.events import redact
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.state import Thresholds
from crag.text.untrusted import neutral

Style = Literal["direct", "chain_of_thought", "few_shot"]
STYLES: Mapping[str, Style] = {
    "chat-direct": "direct",
    "chat-chain-of-thought": "chain_of_thought",
    "chat-few-shot": "few_shot",
}
"""By the name that CRAG_EVALUATOR and the tables have for the evaluator."""
YES, NO = 1.0, -1.0
_CONCURRENCY = 8
_MARKUP = re.compile(r"[*_`]")
_ALTERNATIVE = re.compile(r"\b(?:yes\s*(?:or|/)\s*no|no\s*(?:or|/)\s*yes)\b", re.IGNORECASE)
_LEADING = re.compile(r"\W*(?:(?:the |my |final )*answer(?: is)?\W+)?(yes|no)\b", re.IGNORECASE)
_WORD = re.compile(r"\b(?:yes|no(?!-\w|[ \t]+\w|\.?[ \t]*\d))\b", re.IGNORECASE)
"""A verdict, as against the "no" of "no mention", "no-one" and "No. 5"."""


class VerdictEvaluator:
    """Ask a chat model, with one call for each text, whether the text answers the question.

    Yes is +1, no is -1. The paper's baselines do the same with GPT-3.5 Turbo: `direct` asks for the
    verdict alone, `chain_of_thought` for steps that end in it, `few_shot` after four examples. With
    both thresholds 0, one yes makes the set Correct and nothing but no makes it Incorrect.
    """

    def __init__(
        self, model: ChatModel, *, style: Style = "direct", prompts: Prompts = PACKAGED
    ) -> None:
        self.thresholds = Thresholds(upper=0.0, lower=0.0)
        # Verdicts must not show up among the tokens of the answer that a graph streams.
        self._model: ChatModel = model.with_config(tags=[TAG_NOSTREAM])
        self._style: Style = style
        self._prompts = prompts

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, or NaN where its call failed; -1.0 for an empty one.

        Raises:
            EvaluatorError: every call failed; the message gives the first reason.
        """
        asked = [text for text in texts if text.strip()]
        with ContextThreadPoolExecutor(_CONCURRENCY) as pool:
            judged = list(pool.map(partial(self._judged, question), asked))
        failures = [one for one in judged if isinstance(one, EvaluatorError)]
        if failures and len(failures) == len(asked):
            message = f"the chat model judged none of {len(asked)} texts: {failures[0]}"
            raise EvaluatorError(message)
        scores = iter(math.nan if isinstance(one, EvaluatorError) else one for one in judged)
        return [next(scores) if text.strip() else LOWEST for text in texts]

    def _judged(self, question: str, text: str) -> float | EvaluatorError:
        shown = {"question": question, "knowledge": text}
        values = {name: neutral(value[:LONGEST_TEXT]) for name, value in shown.items()}
        reply = ask(self._model, self._prompts.render(f"grade_{self._style}", **values))
        try:
            if reply.problem is not None:
                return EvaluatorError(redact(str(reply.detail)))
            return YES if verdict(reply.text, self._style) else NO
        except EvaluatorError as error:
            return error


def verdict(reply: str, style: Style = "direct") -> bool:
    """Read the verdict of a reply, whatever its case, punctuation and markup.

    With a chain of thought it is the last yes or no. Otherwise it is the first word of the reply,
    or the only one in it.

    Raises:
        EvaluatorError: the reply holds neither, or both without beginning with one of them.
    """
    text = _ALTERNATIVE.sub("", _MARKUP.sub("", reply))
    said = [word.casefold() for word in _WORD.findall(text)]
    if style == "chain_of_thought":
        decisive = said[-1:]
    elif leading := _LEADING.match(text):
        decisive = [leading[1].casefold()]
    else:
        decisive = list(set(said))
    if len(decisive) != 1:
        raise EvaluatorError(f"the reply is neither yes nor no: {reply[:80]!r}")
    return decisive == ["yes"]
