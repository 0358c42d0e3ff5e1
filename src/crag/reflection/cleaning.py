"""From the text that a reflecting model wrote to the text that a user reads."""

import re

from crag.parts import Candidate
from crag.reflection_tokens import (
    CLOSE,
    CONTINUE,
    OPEN,
    RETRIEVAL,
    RETRIEVE,
    TOKENS,
    without_tokens,
)
from crag.state import Ending
from crag.text.untrusted import neutral

_RELEASED = re.compile(
    "|".join(re.escape(token) for token in (*TOKENS, "</s>", "\n", "<|endoftext|>")
             if token != CONTINUE)
)  # fmt: skip
_BETWEEN = re.compile(
    rf"{re.escape(OPEN)}.*?(?:{re.escape(CLOSE)}|\Z)|{'|'.join(map(re.escape, RETRIEVE))}",
    re.DOTALL,
)
"""What is written between two segments; an invented passage may lack its end."""
_MISSING_SPACE = re.compile(r"(?<=\w)([.!?])(?=\w)")


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
    text, found, _ = text.partition(RETRIEVAL)
    return text, "retrieve" if found else ending


def released_answer(text: str) -> str:
    """Delete exactly what the released script deletes: 14 tokens, ends, line breaks."""
    return _RELEASED.sub("", text)


def released_lead(text: str) -> str:
    """Remove one leading ``#`` or ``:``, as the released script does at the very end."""
    return text[1:] if text.startswith(("#", ":")) else text


def spaced(text: str) -> str:
    """Insert the space that is missing between a sentence's end and a word."""
    return _MISSING_SPACE.sub(r"\1 ", text)


def first_block(text: str) -> str:
    """Return the text up to its first empty line, as the released script cuts it."""
    return text.split("\n\n", 1)[0]
