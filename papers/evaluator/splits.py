"""Keep training and development data apart."""

import random
from collections.abc import Sequence

from crag.errors import TrainingError
from crag.papers.evaluator.pairs import Pair

_SHOWN = 3


def check_classes(pairs: Sequence[Pair], name: str) -> None:
    """Reject data in which every pair has the same class.

    Raises:
        TrainingError: there are only relevant or only irrelevant texts, or none.
    """
    if len({pair.positive for pair in pairs}) < 2:  # noqa: PLR2004 - both classes
        message = (
            f"the {len(pairs)} pairs of {name} are all of one class; an evaluator learns from "
            "relevant texts and from irrelevant ones, such as others retrieved for the questions"
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
    leaky = _questions(development) | _asked_about(train, _titles(development))
    return [pair for pair in train if folded(pair.question) not in leaky]


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
        leaky = _asked_about(development, _titles(rest))
        if not leaky:
            return rest, development
        chosen -= leaky


def folded(text: str) -> str:
    """Return a text in lower case, its white space folded."""
    return " ".join(text.lower().split())


def _asked_about(pairs: Sequence[Pair], titles: set[str]) -> set[str]:
    """Return the questions that have a relevant text with one of the titles."""
    found = (pair for pair in pairs if pair.positive and folded(pair.title) in titles)
    return {folded(pair.question) for pair in found}


def _questions(pairs: Sequence[Pair]) -> set[str]:
    return {folded(pair.question) for pair in pairs}


def _titles(pairs: Sequence[Pair]) -> set[str]:
    return {folded(pair.title) for pair in pairs if pair.positive and folded(pair.title)}
