"""Keep test questions apart from what an evaluator was trained on."""

import re
from collections.abc import Iterable, Sequence

from crag.bench.examples import Example

_WORD = re.compile(r"\w+")


def seen_in_training(
    examples: Sequence[Example], questions: Iterable[str], titles: Iterable[str] = ()
) -> list[Example]:
    """Return the examples whose question, or one of whose gold titles, was trained on.

    The paper trains its evaluator on the rows of PopQA outside the test set (CRAG, App. B), so a
    subject of one may be asked about in the other. Case and punctuation are ignored.
    """
    asked = {_plain(question) for question in questions}
    known = {_plain(title) for title in titles}
    return [
        example
        for example in examples
        if _plain(example.question) in asked
        or any(_plain(title) in known for title in example.gold_titles)
    ]


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
