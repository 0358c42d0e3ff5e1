"""Multiple-choice questions: grading and search use the question without its options.

The official code keeps the options of ARC-Challenge in a separate file and shows them only to the
generator. Here they follow the question, so a chat can ask multiple-choice questions too.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from crag.settings import Settings

_OPTION = re.compile(r"\s*\(?([A-Z]|[1-9])[:.)]\)?\s+(\S.*)")
_FEWEST = 2


class Posed(NamedTuple):
    """A question, and its options by their labels; elsewhere than in ARC there are none."""

    question: str
    options: Mapping[str, str]


def posed(question: str, settings: Settings) -> Posed:
    """Part the options from the question in the task `arc`.

    Options are the last lines, two or more, that begin with ``A:``, ``B)``, ``(C)`` or ``1.``, in
    this order from A or 1 on. Any other question is returned whole.
    """
    lines = question.splitlines()
    found: list[tuple[str, str]] = []
    while lines and (option := _OPTION.fullmatch(lines[-1])):
        found.insert(0, (option[1], option[2].strip()))
        lines.pop()
    stem = "\n".join(lines).strip()
    labels = [label for label, _ in found]
    if settings.task != "arc" or not stem or len(found) < _FEWEST or not _in_order(labels):
        return Posed(question, {})
    return Posed(stem, dict(found))


def stem(question: str, settings: Settings) -> str:
    """Return what a retriever, an evaluator and a search are asked: the question alone."""
    return posed(question, settings).question


def lettered(options: Mapping[str, str]) -> str:
    """Write options as lines ``A: text``; labels that are numbers become letters."""
    return "\n".join(f"{_letter(label)}: {text}" for label, text in options.items())


def _in_order(labels: list[str]) -> bool:
    first = "A" if labels[0] == "A" else "1"
    return labels == [chr(ord(first) + place) for place in range(len(labels))]


def _letter(label: str) -> str:
    return chr(ord("A") + int(label) - 1) if label.isdigit() else label
