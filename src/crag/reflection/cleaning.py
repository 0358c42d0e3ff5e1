"""From what a reflecting model wrote to what a user reads."""

import re

from crag.reflection.tokens import CLOSE, CONTINUE, OPEN, RETRIEVE, TOKENS, without_tokens
from crag.text.untrusted import neutral

_RELEASED = re.compile(
    "|".join(re.escape(token) for token in (*TOKENS, "</s>", "\n", "<|endoftext|>")
             if token != CONTINUE)
)  # fmt: skip
_BETWEEN = re.compile(
    rf"{re.escape(OPEN)}.*?(?:{re.escape(CLOSE)}|\Z)|{'|'.join(map(re.escape, RETRIEVE))}",
    re.DOTALL,
)
"""What stands between two segments; an invented passage may lack its end."""
_MISSING_SPACE = re.compile(r"(?<=\w)([.!?])(?=\w)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def cleaned(text: str) -> str:
    """Return the text without tokens, and without passages that the model made up.

    White space is folded. Numbers in brackets lose them, since only assembly writes citations.
    """
    kept = neutral(without_tokens(_BETWEEN.sub(" ", text)))
    return " ".join(kept.split())


def short_answer(text: str) -> str:
    """Return a short answer: cleaned, without a leading ``#`` or ``:``."""
    text = cleaned(text)
    return text[1:].lstrip() if text.startswith(("#", ":")) else text


def released_answer(text: str) -> str:
    """Delete what the released script deletes and nothing else: 14 tokens, ends, line breaks."""
    return _RELEASED.sub("", text)


def released_lead(text: str) -> str:
    """Remove one leading ``#`` or ``:``, as the released script does at the very end."""
    return text[1:] if text.startswith(("#", ":")) else text


def spaced(text: str) -> str:
    """Insert the space that is missing between a sentence's end and a word."""
    return _MISSING_SPACE.sub(r"\1 ", text)


def first_block(text: str) -> str:
    """Return the text up to its first blank line."""
    return _BLANK_LINE.split(text, maxsplit=1)[0]
