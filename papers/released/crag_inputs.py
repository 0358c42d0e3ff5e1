"""Made-up inputs for CRAG's programs, with what programs stumble over in the published files.

Everything is drawn by `Random.random` alone, which alone draws the same in every Python.
"""

import zlib
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from crag.correction.scoring import joined
from crag.papers.bench.examples import TaskName
from crag.reflection_tokens import CONTINUE, TOKENS
from crag.testing import FakeEvaluator

FOLDERS: dict[str, TaskName] = {
    "popqa": "popqa", "bio": "biography", "pubqa": "pubhealth", "arc_challenge": "arc",
}  # fmt: skip
"""The folders of ``data``, which are the official names of the tasks, and ours."""
THRESHOLDS = ((0.592, -0.995), (0.5, -0.915), (0.95, -0.91), (0.3, -0.3))
"""Upper and lower ones; the first three are the published ones."""
NAMES = ("Ada", "Bo Li", "Cleo", "D. E. Fay", "Gus (actor)", "Who Is", "Émile", "Zoë Ω")
_WORDS = (
    "river", "stone", "a", "of", "it", "A:", "No.", "B:", "7", "naïve", "blue", "engine", "[1]",
    "knowledge", "in", "<ref", "Ada", "wrote", "notes", "true", "//", "$5", "&amp;",
)  # fmt: skip
_ENDS = (". ", ". ", ". ", "? ", "?", ".", "! ", ".  ", ". ? ", "; ")
_ODD = ("</s>", "<|endoftext|>", "\n", "\n\n", " ", "  ", "SUPPORTS", "REFUTES", "true", "C", "7")


_Kind = TypeVar("_Kind")


def drawing(seed: int | str) -> Random:
    """Return what draws for a seed."""
    return Random(seed)  # noqa: S311 - made-up data


def one_of(draw: Random, choices: Sequence[_Kind]) -> _Kind:
    """Draw one."""
    return choices[int(draw.random() * len(choices))]


def up_to(draw: Random, most: int) -> int:
    """Draw a number from 1 to `most`."""
    return 1 + int(draw.random() * most)


def chance(draw: Random, share: float) -> bool:
    """Return true in this share of draws."""
    return draw.random() < share


def words_of(draw: Random, most: int) -> str:
    """Draw 1 to `most` words."""
    return " ".join(one_of(draw, _WORDS) for _ in range(up_to(draw, most)))


def passage_of(draw: Random) -> str:
    """Draw a passage of up to nine sentences, some of them twice, without spaces around it."""
    sentences: list[str] = []
    for _ in range(up_to(draw, 9)):
        repeats = sentences and chance(draw, 0.1)
        sentences.append(one_of(draw, sentences) if repeats else words_of(draw, 14))
    return "".join(sentence + one_of(draw, _ENDS) for sentence in sentences).strip()


def reply_of(draw: Random) -> str:
    """Draw what a generator with reflection tokens may write."""
    pieces = (*TOKENS, *_ODD, CONTINUE, "[Utility:", "5]")
    return "".join(
        one_of(draw, pieces) if chance(draw, 0.4) else f"{words_of(draw, 3)} "
        for _ in range(up_to(draw, 8))
    )


def row_of(draw: Random, folder: str, place: int) -> dict[str, Any]:
    """Draw a row of the file that the data in `folder` is made of."""
    name = NAMES[place]
    row: dict[str, Any] = {
        "id": place,
        "question": _question(draw, folder, place),
        "ctxs": [
            {"title": name, "text": f"{_mark(place)} {words_of(draw, 4)}\n{words_of(draw, 4)}"}
            for _ in range(up_to(draw, 3))
        ],
    }
    match folder:
        case "popqa":
            answers = list({words_of(draw, 2) for _ in range(up_to(draw, 3))})
            return row | {"answers": sorted(answers), "s_wiki_title": name}
        case "pubqa":
            return row | {"answers": [one_of(draw, ("true", "false"))]}
        case _:
            labels = list(one_of(draw, ("ABCD", "ABCD", "1234", "ABC", "ABCDE")))
            options = {"label": labels, "text": [words_of(draw, 3) for _ in labels]}
            return row | {"choices": options, "answerKey": one_of(draw, labels)}


def _question(draw: Random, folder: str, place: int) -> str:
    return f"Who is {NAMES[place]}?" if folder == "bio" else f"{_mark(place)} {words_of(draw, 8)}"


def _mark(place: int) -> str:
    """Return words that a question shares with its own passages alone."""
    return f"{NAMES[place]} wing{place}"


def judged(text: str) -> float:
    """Return the score that the stand-in for the evaluator gives, often one of few."""
    number = zlib.crc32(text.encode())
    return (number % 21 - 10) / 10 if number % 3 else (number % 1000) / 500 - 1


def evaluator(upper: float = 0.5, lower: float = -0.5) -> FakeEvaluator:
    """Return ours, which scores as `judged` does."""
    return FakeEvaluator(lambda asked, text: judged(joined(asked, text)), upper=upper, lower=lower)
