"""Measure how the wording of a question changes what is answered, over real documentation.

    python papers/measurements/docs_wordings.py DOCS [--only NAME…] [--keep FOLDER] [--details]

FOLDER keeps the indexes and what has been answered, so that a run that was ended goes on. Every
question of `documentation.py` is asked as it stands and in six other wordings that a rule makes of
it (`WORDINGS`), each through retrieval, with the embedded default and no web. `--wordings` takes
only some of them, by number from 0.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from documentation import (
    Asked,
    embedded_parts,
    holds_evidence,
    indexed_corpora,
    is_right,
    parser_of,
    questions,
    shown_passages,
)

from crag.graph import build_crag
from crag.index.retriever import IndexRetriever
from crag.papers.experiments.report import table
from crag.papers.training.records import read_objects
from crag.parts import Parts
from crag.settings import Settings

_SMALL_WORDS = """
a an and are as at be been by can could did do does for from had has have how i if in is it its may
me might must my of on or our shall should that the their there these they this those to us was we
were what when where which who whom whose why will with would you your
"""
_FEWEST_LETTERS = 5
"""Of a word in which two letters change places."""


def _polite(question: str) -> str:
    return f"Could you please tell me {_small(question)}"


def _with_source(question: str) -> str:
    return f"In the documentation: {_small(question)}"


def _with_thanks(question: str) -> str:
    return f"{question} Thanks in advance!"


def _lower(question: str) -> str:
    return question.lower().rstrip("?!. ")


def _keywords(question: str) -> str:
    """Leave out small words and the marks at the end of words; signs such as ``-j`` stay."""
    words = [word.rstrip("?!.,;:") for word in question.split()]
    small = {*_SMALL_WORDS.split(), ""}
    return " ".join(word for word in words if re.sub(r"['’].*", "", word.lower()) not in small)


def _mistyped(question: str) -> str:
    """Swap two letters within two words, the same ones in every run."""
    chance = random.Random(question)  # noqa: S311 - no secret
    words = re.finditer(r"[A-Za-z]+", question)
    long = [word.span() for word in words if len(word[0]) >= _FEWEST_LETTERS]
    letters = list(question)
    for start, end in chance.sample(long, min(2, len(long))):
        at = chance.randrange(start + 1, end - 2)
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def _small(question: str) -> str:
    """Begin with a small letter, unless the first word is a name or an abbreviation."""
    first = question.split(maxsplit=1)[0]
    return question[0].lower() + question[1:] if first[1:].islower() else question


WORDINGS: Mapping[str, Callable[[str], str]] = {
    "as it stands": str,
    "Could you please tell me …": _polite,
    "In the documentation: …": _with_source,
    "… Thanks in advance!": _with_thanks,
    "small letters, no mark": _lower,
    "keywords": _keywords,
    "two typing errors": _mistyped,
}


class Said(NamedTuple):
    """What became of one question in one wording."""

    asked: str
    retrieved: bool
    """The documents hold the evidence."""
    action: str
    sure: bool
    right: bool
    """Sure, and it holds the answer."""
    near: bool
    """What is shown, sure or not, holds the answer."""
    first: str
    """The first passage shown; empty if there is none."""


def main() -> None:
    """Ask everything in every wording, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--keep", type=Path, help="keep indexes and answers in this folder")
    every = range(len(WORDINGS))
    parser.add_argument(
        "--wordings", nargs="*", type=int, choices=every, default=every, help="their numbers"
    )
    given = parser.parse_args()
    rows = questions(given.docs, given.only)
    names = [list(WORDINGS)[number] for number in sorted({0, *given.wordings})]
    kept = given.keep and given.keep / "said.jsonl"
    found = _answered(kept, names)
    for index, asked in indexed_corpora(given.docs, rows, given.keep):
        parts = embedded_parts(IndexRetriever(index))
        for name in names:
            for row in asked:
                if row.id not in found[name]:
                    said = _said(row, WORDINGS[name](row.question), parts)
                    found[name][row.id] = said
                    _keep(kept, name, row.id, said)
    print(changes(rows, found))
    if given.details:
        print("\n".join(_details(rows, found)))


def _answered(kept: Path | None, names: Sequence[str]) -> dict[str, dict[str, Said]]:
    """Return what an earlier run has kept, by wording and question."""
    found: dict[str, dict[str, Said]] = {name: {} for name in names}
    for row in read_objects(kept) if kept and kept.exists() else []:
        if row["wording"] in found:
            found[row["wording"]][row["id"]] = Said(**row["said"])
    return found


def _keep(kept: Path | None, name: str, identifier: str, said: Said) -> None:
    if kept is None:
        return
    with kept.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"wording": name, "id": identifier, "said": said._asdict()}) + "\n")


def _said(one: Asked, question: str, parts: Parts) -> Said:
    settings = Settings()
    state = build_crag(parts).invoke({"question": question}, context=settings)
    passages = shown_passages(state["answer"])
    sure = not state["abstained"]
    near = is_right("\n".join(passages), one)
    right = sure and is_right(state["answer"], one)
    texts = "\n".join(document.page_content for document in state["documents"])
    retrieved = one.answerable and holds_evidence(texts, one)
    return Said(question, retrieved, state["action"], sure, right, near, "".join(passages[:1]))


def changes(rows: Sequence[Asked], found: Mapping[str, Mapping[str, Said]]) -> str:
    """Return a Markdown table with a row for each wording."""
    names = (
        "wording", "evidence retrieved", "Incorrect", "right", "answered or among the closest",
        "sure and wrong", "sure, unanswerable", "same action", "same first passage",
    )  # fmt: skip
    plain = found["as it stands"]
    lines = []
    for name, said in found.items():
        able = [said[row.id] for row in rows if row.answerable]
        cells = (
            sum(one.retrieved for one in able),
            sum(one.action == "incorrect" for one in able),
            sum(one.right for one in able),
            sum(one.near for one in able),
            sum(one.sure and not one.right for one in able),
            sum(said[row.id].sure for row in rows if not row.answerable),
            sum(said[row.id].action == plain[row.id].action for row in rows),
            sum(said[row.id].first == plain[row.id].first for row in rows),
        )
        lines.append([name, *map(str, cells)])
    return table(names, lines)


def _details(rows: Sequence[Asked], found: Mapping[str, Mapping[str, Said]]) -> list[str]:
    plain = found["as it stands"]
    return [
        f"{name} | {row.id} | {plain[row.id].right} -> {said[row.id].right} | {said[row.id].asked}"
        for name, said in found.items()
        for row in rows
        if said[row.id].right != plain[row.id].right
        or (not row.answerable and said[row.id].sure != plain[row.id].sure)
    ]


if __name__ == "__main__":
    main()
