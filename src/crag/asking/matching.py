"""Compare answers as SQuAD's script does: without case, punctuation and articles."""

import re
import string
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TYPOGRAPHIC = re.compile(r"[^\w\s!-~]")
"""Quotation marks and dashes that `string.punctuation` does not include."""


def normalise(text: str) -> str:
    """Lower-case and remove punctuation, articles and extra spaces, as SQuAD's script does."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalised_match(prediction: str, answers: Sequence[str]) -> bool:
    """Return whether the words of any answer occur in the prediction, both normalised.

    Only whole words match: `pol` is not in `police`, so this can be lower than the official match.
    An answer of punctuation or articles only matches nothing.
    """
    said = f" {_words(prediction)} "
    return any(f" {words} " in said for words in map(_words, answers) if words)


def _words(text: str) -> str:
    return normalise(_TYPOGRAPHIC.sub("", text))
