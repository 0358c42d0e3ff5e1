"""From the text that a reflecting model wrote to the text that a user reads."""

import re

from crag.parts import Candidate
from crag.reflection_tokens import (
    CLOSE,
    OPEN,
    RETRIEVAL,
    RETRIEVE,
    without_tokens,
)
from crag.state import Ending
from crag.text.untrusted import neutral

_BETWEEN = re.compile(
    rf"{re.escape(OPEN)}.*?(?:{re.escape(CLOSE)}|\Z)|{'|'.join(map(re.escape, RETRIEVE))}",
    re.DOTALL,
)
"""What is written between two segments; an invented passage may lack its end."""


def cleaned(text: str) -> str:
    """Return the text without tokens, and without passages that the model made up.

    White space is folded. Numbers in brackets lose the brackets: only assembly writes citations.
    """
    kept = neutral(without_tokens(_BETWEEN.sub(" ", text)))
    return " ".join(kept.split())


def short_answer(text: str) -> str:
    """Return a short answer: cleaned, without a leading ``#`` or ``:``."""
    text = cleaned(text)
    return text[1:].lstrip() if text.startswith(("#", ":")) else text


def cut(candidate: Candidate, *, at_retrieval: bool) -> tuple[str, Ending, bool]:
    """Return text and ending of a candidate, and whether it went on into an invented passage.

    `at_retrieval` cuts at the first ``[Retrieval]``, for continuations that did not stop there.
    """
    text, ending = candidate.text, candidate.ending
    if at_retrieval:
        text, ending = cut_at_retrieval(text, ending)
    text, invented, _ = text.partition(OPEN)
    return text, ending, bool(invented)


def cut_at_retrieval(text: str, ending: Ending) -> tuple[str, Ending]:
    """Return the text before the first ``[Retrieval]``, and how it ends."""
    text, token, _ = text.partition(RETRIEVAL)
    return text, "retrieve" if token else ending
