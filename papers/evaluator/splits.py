"""Keep training and development data apart."""

import random
from collections.abc import Sequence

from crag.errors import TrainingError
from crag.papers.evaluator.pairs import Pair

FEWEST = 20
"""Fewest pairs in a development set for early stopping."""
_SHOWN = 3


def check_classes(pairs: Sequence[Pair], name: str) -> None:
    """Reject data in which every pair has the same class.

    Raises:
        TrainingError: there are only relevant or only irrelevant texts.
    """
    if not pairs:
        message = f"nothing is left of {name}: every question is in the development data too"
        raise TrainingError(message)
    positives = sum(pair.positive for pair in pairs)
    if positives in {0, len(pairs)}:
        kind = "relevant" if positives else "irrelevant"
        message = (
            f"all {len(pairs)} pairs of {name} are {kind}; an evaluator learns from both. Add "
            f"{'irrelevant' if positives else 'relevant'} texts, such as other texts that were "
            "retrieved for the same questions"
        )
        raise TrainingError(message)


def check_apart(train: Sequence[Pair], development: Sequence[Pair]) -> None:
    """Reject data that leak: a question, or a title of a relevant text, in both sets.

    Raises:
        TrainingError: the sets share one, named in the message.
    """
    questions = _questions(train) & _questions(development)
    titles = _titles(train) & _titles(development)
    for shared, what in ((questions, "question"), (titles, "title of a relevant text")):
        if shared:
            some = ", ".join(repr(text) for text in sorted(shared)[:_SHOWN])
            message = (
                f"{len(shared)} times the same {what} is in training and development data "
                f"({some}…): the metrics would be too optimistic. Leave them out of the "
                "training data with --leaks drop, or allow it with --leaks allow"
            )
            raise TrainingError(message)


def without_leaks(train: Sequence[Pair], development: Sequence[Pair]) -> list[Pair]:
    """Remove every question from `train` that leaks: see `check_apart`."""
    titles = _titles(development)
    leaky = _questions(development)
    leaky |= {
        folded(pair.question) for pair in train if pair.positive and folded(pair.title) in titles
    }
    return [pair for pair in train if folded(pair.question) not in leaky]


def check_large_enough(development: Sequence[Pair], early_stopping: int) -> None:
    """Reject a development set that is not suitable for early stopping.

    Raises:
        TrainingError: it has fewer than 20 pairs, or pairs of one class only.
    """
    if early_stopping and len(development) < FEWEST:
        message = (
            f"early stopping needs a development set of at least {FEWEST} pairs; this one holds "
            f"{len(development)}. Add pairs, or set early_stopping=0"
        )
        raise TrainingError(message)
    if early_stopping:
        check_classes(development, "the development data")


def held_out(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split off a development set by question, so that no question is on both sides.

    Titles of relevant texts that would be on both sides stay in the training set.
    """
    questions = sorted(_questions(pairs))
    random.Random(seed).shuffle(questions)  # noqa: S311 - a split, no secret
    chosen = set(questions[: round(len(questions) * share)])
    while True:  # A question that moves back takes its other titles along.
        rest = [pair for pair in pairs if folded(pair.question) not in chosen]
        development = [pair for pair in pairs if folded(pair.question) in chosen]
        known = _titles(rest)
        leaky = {folded(p.question) for p in development if p.positive and folded(p.title) in known}
        if not leaky:
            return rest, development
        chosen -= leaky


def folded(text: str) -> str:
    """Return a text in lower case, its white space folded."""
    return " ".join(text.lower().split())


def _questions(pairs: Sequence[Pair]) -> set[str]:
    return {folded(pair.question) for pair in pairs}


def _titles(pairs: Sequence[Pair]) -> set[str]:
    return {folded(pair.title) for pair in pairs if pair.positive and folded(pair.title)}
