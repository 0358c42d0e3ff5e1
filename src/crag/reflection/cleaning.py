"""From the text that a reflecting model wrote to the text that a user reads."""

import re

from crag.reflection_tokens import CLOSE, OPEN, RETRIEVE, without_tokens
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
