"""Made-up inputs for CRAG's programs, with what programs stumble over in the published files.

Everything is drawn by `Random.random` alone, which alone draws the same in every Python.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

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


class Folder(NamedTuple):
    """A folder of the shape of the published ones: files by their names, each without its end."""

    questions: list[str]
    passages: list[list[str]]
    files: dict[str, str]

    def write(self, place: Path) -> None:
        """Write the files, and the passages as the inference program reads them."""
        (place / "ref").mkdir(parents=True, exist_ok=True)
        pairs = [
            f"{question} [SEP] {passage}"
            for question, passages in zip(self.questions, self.passages, strict=True)
            for passage in passages
        ]
        for name, text in (self.files | {f"test_{place.name}.txt": "\n".join(pairs)}).items():
            (place / name).write_bytes(text.encode())


def folder_of(draw: Random, name: str) -> Folder:
    """Draw a folder with ten passages a question, and with the published faults."""
    count = 4 + up_to(draw, 4)
    questions = [_question(draw, name, place) for place in range(count)]
    passages = [[_passage(draw, name, place) for _ in range(10)] for place in range(count)]
    internal = [f"#{_text(draw, place)}" for place in range(count)]
    external = [_web(draw, place) for place in range(count)]
    if chance(draw, 0.3):
        external.insert(0, "")
    first, second = (
        ("knowledge1:", "knowledge2:") if name == "bio" else ("Knowledge1:", "Knowledge2:")
    )
    combined = [
        f"{first} {one[1:]} [sep] {second} {two[1:]}"
        for one, two in zip(internal, external, strict=False)
    ]
    files = {
        "sources": questions, "retrieved_psgs": [" [sep] ".join(some) for some in passages],
        "ref/correct": internal, "ref/incorrect": external, "ref/ambiguous": combined,
    }  # fmt: skip
    if name == "arc_challenge":
        rows = [row_of(draw, name, place)["choices"] for place in range(count)]
        files["choices"] = [
            "; ".join(
                f"{label}: {text}" for label, text in zip(row["label"], row["text"], strict=True)
            )
            for row in rows
        ]
    return Folder(questions, passages, {file: "\n".join(lines) for file, lines in files.items()})


def _question(draw: Random, folder: str, place: int) -> str:
    return f"Who is {NAMES[place]}?" if folder == "bio" else f"{_mark(place)} {words_of(draw, 8)}"


def _mark(place: int) -> str:
    """Return words that a question shares with its own passages alone."""
    return f"{NAMES[place]} wing{place}"


def _passage(draw: Random, folder: str, place: int) -> str:
    text = f"{_mark(place)} {words_of(draw, 5)}"
    return text if folder == "popqa" else f"{NAMES[place]} // {text}"


def _text(draw: Random, place: int) -> str:
    spaces = one_of(draw, ("", " ", "   ", "\t"))
    return f"{spaces}{NAMES[place]}{one_of(draw, (' ', '  ', chr(9)))}{words_of(draw, 9)}{spaces}"


def _web(draw: Random, place: int) -> str:
    """Draw a line of web knowledge: without mark, empty, or with a lone carriage return."""
    text = f"{NAMES[place]}: {_text(draw, place)} ; {NAMES[place]}: {words_of(draw, 5)}"
    kind = draw.random()
    if kind < 0.1:  # noqa: PLR2004 - a share
        return one_of(draw, ("", "#", text[3:]))
    return f"#{text}" if kind < 0.8 else f"#{text}\r{words_of(draw, 4)}"  # noqa: PLR2004


def judged(text: str) -> float:
    """Return the score that the stand-in for the evaluator gives, often one of few."""
    number = zlib.crc32(text.encode())
    return (number % 21 - 10) / 10 if number % 3 else (number % 1000) / 500 - 1


def evaluator(upper: float = 0.5, lower: float = -0.5) -> FakeEvaluator:
    """Return ours, which scores as `judged` does."""
    return FakeEvaluator(lambda asked, text: judged(joined(asked, text)), upper=upper, lower=lower)
