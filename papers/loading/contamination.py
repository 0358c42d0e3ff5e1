"""Keep test questions apart from what an evaluator was trained on."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from crag.papers.bench.examples import Example, Loaded, Refused
from crag.papers.evaluator.pairs import read_pairs

_WORD = re.compile(r"\w+")


def kept_apart(loaded: Loaded, trained_on: Sequence[Path]) -> Loaded:
    """Skip questions that occur in training files, or whose subject is relevant there.

    Raises:
        DataError: an evaluator cannot be trained on one of the files.
    """
    pairs = [pair for path in trained_on for pair in read_pairs(path)]
    titles = [pair.title for pair in pairs if pair.positive and pair.title]
    seen = seen_in_training(loaded.examples, [pair.question for pair in pairs], titles)
    known = {example.id for example in seen}
    refused = [
        Refused(f"question {one.id!r}", "the evaluator was trained on it or on its page", one.id)
        for one in seen
    ]
    return Loaded(
        [example for example in loaded.examples if example.id not in known],
        [*loaded.refused, *refused],
        loaded.notes,
    )


def seen_in_training(
    examples: Sequence[Example], questions: Iterable[str], titles: Iterable[str] = ()
) -> list[Example]:
    """Return the examples whose question, or one of whose gold titles, was trained on.

    The paper trains its evaluator on the rows of PopQA outside the test set (CRAG, App. B), so both
    may ask about the same subject. Case and punctuation are ignored.
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
