"""Tasks that need no retrieval, with their right outputs: all they need stands in them."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Task(NamedTuple):
    """An instruction and the output that carries it out."""

    instruction: str
    output: str


def self_contained(sentences: Sequence[str], count: int, seed: int = 0) -> list[Task]:
    """Return `count` tasks, fewer if they repeat: calculation, and work on a given sentence.

    `sentences` is not empty.
    """
    draw = random.Random(seed)  # noqa: S311 - made-up tasks, no secret
    made: dict[str, Task] = {}
    for attempt in range(4 * count):
        if len(made) == count:
            break
        task = _MAKERS[attempt % len(_MAKERS)](draw, " ".join(draw.choice(sentences).split()))
        made.setdefault(task.instruction, task)
    return list(made.values())


def _sum(draw: random.Random, _: str) -> Task:
    first, second = draw.randrange(2, 1000), draw.randrange(2, 1000)
    asked = draw.choice(("What is {} plus {}?", "Add {} and {}.", "Calculate {} + {}."))
    return Task(asked.format(first, second), f"{first} + {second} = {first + second}.")


def _product(draw: random.Random, _: str) -> Task:
    first, second = draw.randrange(2, 100), draw.randrange(2, 13)
    asked = draw.choice(("What is {} times {}?", "Multiply {} by {}."))
    return Task(asked.format(first, second), f"{first} × {second} = {first * second}.")


def _capitals(draw: random.Random, sentence: str) -> Task:
    asked = draw.choice(("Write this sentence in capital letters", "Put this into upper case"))
    return Task(f"{asked}: {sentence}", sentence.upper())


def _order(draw: random.Random, sentence: str) -> Task:
    words = sorted({word.strip(".,;:()\"'").lower() for word in sentence.split()} - {""})
    given = words[: draw.randrange(3, 7)]
    draw.shuffle(given)
    asked = draw.choice(("Put these words in alphabetical order", "Sort these words from A to Z"))
    return Task(f"{asked}: {', '.join(given)}", f"{', '.join(sorted(given))}.")


def _count(draw: random.Random, sentence: str) -> Task:
    asked = draw.choice(("How many words does this sentence have?", "Count the words of this:"))
    return Task(f"{asked} {sentence}", f"It has {len(sentence.split())} words.")


def _first(draw: random.Random, sentence: str) -> Task:
    number = draw.randrange(2, 6)
    return Task(
        f"Repeat the first {number} words of this sentence: {sentence}",
        " ".join(sentence.split()[:number]),
    )


_MAKERS: tuple[Callable[[random.Random, str], Task], ...] = (
    _sum, _capitals, _order, _product, _count, _first,
)  # fmt: skip
