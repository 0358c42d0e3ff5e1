"""What a question names, and which texts are about that rather than another of its kind."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from crag.state import Strip
from crag.text.words import bare, exact_names, names_lacking, question_words, words

EXACT_WEIGHT: Final = 8.0
"""Log-odds that a text loses without a code, a number or a quoted phrase of the question that only
one of all has."""
NAME_WEIGHT: Final = 6.0
"""The same for a word that begins with a capital letter."""
LABEL_WEIGHT: Final = 2.0
"""The same for any other word that labels texts, which is often a common one, such as "command".
With 6 instead of 2, the first quotation of one documentation question less is right."""
_QUOTED = re.compile(r"[\"“”„«`]([^\"“”„«»`\n]{2,200})[\"”“»`]")
_CAPITAL = re.compile(r"(?<=[\w,;] )[^\W\d_a-z][\w.+#-]*")
"""A word with a capital letter that does not begin a sentence."""


def about(strip: Strip) -> str:
    """Return what says what a strip is about, but for its own words."""
    said = [strip["source"]["title"], *strip.get("headings", []), strip.get("before", "")]
    return "\n".join(filter(None, said))


def lacking(question: str, strips: Iterable[Strip]) -> list[str]:
    """Return the names of a question that no strip has, nor what says what the strip is about.

    What lacks one may be about another of its kind, such as the ticket of another town.
    """
    return names_lacking(question, " ".join(f"{strip['text']} {about(strip)}" for strip in strips))


def named_odds(question: str, texts: Sequence[tuple[str, str]]) -> list[float]:
    """Return what each text loses, in log-odds, for the names of a question that it lacks.

    `texts` are pairs of what says what a text is about, and the text itself. Names are codes,
    numbers, quoted phrases, words with capital letters, and words of the labels. One counts the
    less the more texts have it, and one that none has not at all; the best text loses nothing.
    """
    phrases = {phrase for found in _QUOTED.finditer(question) if (phrase := _folded(found[1]))}
    capital = {word for found in _CAPITAL.finditer(question) for word in words(found[0])}
    asked, labels = set(question_words(question)), set[str]()
    held: list[set[str]] = []
    for label, text in texts:
        said = f"{label}\n{text}".replace("\\", "")
        plain = _folded(said) if phrases else ""
        held.append(asked.intersection(words(said)) | {one for one in phrases if one in plain})
        labels |= asked.intersection(words(label))
    weights: dict[str, float] = {}
    for name, count in Counter(name for own in held for name in own).items():
        is_exact = name in phrases or bool(exact_names(name))
        label_weight = LABEL_WEIGHT if name in labels else 0.0
        weight = EXACT_WEIGHT if is_exact else NAME_WEIGHT if name in capital else label_weight
        weights[name] = weight * (1 - math.log(count) / math.log(len(texts) + 1))
    lost = [sum(weight for name, weight in weights.items() if name not in own) for own in held]
    return [min(lost) - one for one in lost]


def _folded(text: str) -> str:
    return bare(text).casefold() if text.strip() else ""
