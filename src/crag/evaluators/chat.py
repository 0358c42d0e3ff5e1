"""A chat model that says yes or no to each text: the LLM evaluators CRAG is compared with."""

import re
from collections.abc import Sequence
from typing import Literal, get_args

from langgraph.constants import TAG_NOSTREAM

from crag.answering.model_calls import ask
from crag.errors import SettingsError
from crag.evaluators.prompted import PromptedEvaluator, failure, shown
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.state import Thresholds

PromptStyle = Literal["direct", "chain_of_thought", "few_shot", "levels"]
YES, NO = 1.0, -1.0
LEVELS = {"high": 1.0, "medium": 0.0, "low": -1.0}
DEFAULT_CONCURRENCY = 8

_THOUGHTS = re.compile(r"\A.*</think>|<think>.*", re.DOTALL | re.IGNORECASE)
"""Some servers leave the opening tag out; a reply cut short lacks the closing one."""
_MARKUP = re.compile(r"[*_`]")
_ALTERNATIVE = re.compile(r"\b(?:yes\s*(?:or|/)\s*no|no\s*(?:or|/)\s*yes)\b", re.IGNORECASE)
_LEADING = re.compile(r"\W*(?:(?:the |my |final )*answer(?: is)?\W+)?(yes|no)\b", re.IGNORECASE)
_LEVEL = re.compile(r"\b(?:high|medium|low)\b", re.IGNORECASE)
_WORD = re.compile(r"\b(?:yes|no(?!-\w|[ \t]+\w|\.?[ \t]*\d))\b", re.IGNORECASE)
"""A verdict, as against the "no" of "no mention", "no-one" and "No. 5"."""


class ChatEvaluator(PromptedEvaluator):
    """Ask a chat model, with one call for each text, whether the text answers the question.

    Yes is +1, no is -1. The paper's baselines (Table 4) do the same with GPT-3.5 Turbo: `direct`
    asks for the verdict alone, `chain_of_thought` for steps that end in it, `few_shot` after four
    examples. With the default thresholds, both 0, one yes makes the set Correct and nothing but no
    makes it Incorrect. With two values only, Ambiguous never happens unless `thresholds` are set
    for it (a `lower` of -1 gives it the place of Incorrect).

    `levels` asks for high, medium or low, the grades of the poster about CRAG: +1, 0 and -1, with
    thresholds 0.5 and -0.5.

    Each text costs one call: a run pays for each document and again for each strip. These calls are
    not part of a run's count of LLM calls nor of its budget.

    Raises:
        SettingsError: `style`, `concurrency` or `thresholds` is out of range.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        style: PromptStyle = "direct",
        concurrency: int = DEFAULT_CONCURRENCY,
        thresholds: Thresholds | None = None,
        prompts: Prompts = PACKAGED,
    ) -> None:
        middle = 0.5 if style == "levels" else 0.0
        super().__init__(thresholds or Thresholds(upper=middle, lower=-middle), concurrency)
        if style not in get_args(PromptStyle):
            raise SettingsError("style", style, f"one of {', '.join(get_args(PromptStyle))}")
        # Verdicts must not show up among the tokens of the answer that a graph streams.
        self._model: ChatModel = model.with_config(tags=[TAG_NOSTREAM])
        self._style: PromptStyle = style
        self._prompts = prompts

    def groups(self, texts: Sequence[str]) -> list[list[str]]:
        """Put each text into its own call."""
        return [[text] for text in texts]

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Ask about the one text of the group."""
        messages = self._prompts.render(
            f"grade_{self._style}", question=shown(question), knowledge=shown(texts[0])
        )
        reply = ask(self._model, messages)
        if reply.problem is not None:
            raise failure(reply.detail)
        if self._style == "levels":
            return [LEVELS[level(reply.text)]]
        return [YES if verdict(reply.text, self._style) else NO]


def verdict(reply: str, style: PromptStyle = "direct") -> bool:
    """Read the verdict of a reply, whatever its case, punctuation and markup.

    With a chain of thought it is the last yes or no. Otherwise it is the first word
    of the reply, or the only one in it. Text between ``<think>`` tags is ignored.

    Raises:
        EvaluatorError: the reply holds neither, or both without beginning with one of them.
    """
    text = _ALTERNATIVE.sub("", _MARKUP.sub("", without_thoughts(reply)))
    said = [word.casefold() for word in _WORD.findall(text)]
    if style == "chain_of_thought":
        decisive = said[-1:]
    elif leading := _LEADING.match(text):
        decisive = [leading[1].casefold()]
    else:
        decisive = list(set(said))
    if len(decisive) != 1:
        raise failure(f"the reply is neither yes nor no: {reply[:80]!r}")
    return decisive == ["yes"]


def level(reply: str) -> str:
    """Read high, medium or low: the first word of the reply, or the only one of the three in it.

    Raises:
        EvaluatorError: the reply has none of them, or several without beginning with one.
    """
    text = _MARKUP.sub("", without_thoughts(reply)).strip()
    said = [str(word).casefold() for word in _LEVEL.findall(text)]
    begins = bool(said) and text.casefold().startswith(said[0])
    if not begins and len(set(said)) != 1:
        raise failure(f"the reply is neither high nor medium nor low: {reply[:80]!r}")
    return said[0]


def without_thoughts(reply: str) -> str:
    """Drop what a reasoning model wrote before its reply, between ``<think>`` tags."""
    return _THOUGHTS.sub("", reply)
