r"""Measure what becomes right, wrong and false when quotations are sure from other scores on.

    python papers/measurements/sure_quotations.py DATA FOLDER [--limit N]

The sets are those of `generator_questions.py`, and questions of SQuAD 2.0 that were written to look
as if their paragraph answered them. Each is answered by quotation, without a web, as the embedded
default does. Right: a gold answer stands in what is shown. FOLDER keeps what was retrieved for the
documentation.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from documentation import quoted_at_any_score
from generator_questions import SetName, load, looking_answerable, matches

from crag.papers.experiments.examples import Example
from crag.papers.experiments.report import table
from crag.testing import FakeRetriever

THRESHOLDS = (0.83, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.3)


class Said(NamedTuple):
    """The best quotations of a question, were they sure."""

    score: float
    right: bool
    answerable: bool


def main() -> None:
    """Ask every set, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, help="take only the first questions of each set")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    names: tuple[SetName, ...] = get_args(SetName)
    sets: dict[str, list[Example]] = {
        name: load(name, given.data, given.folder / "docs.json") for name in names
    }
    sets["squad2"] = looking_answerable(given.data)
    said = {
        f"{name}, {len(examples[: given.limit])}": [
            quoted(example) for example in examples[: given.limit]
        ]
        for name, examples in sets.items()
    }
    rows = [[f"{one:g}", *(counted(found, one) for found in said.values())] for one in THRESHOLDS]
    print(table(("sure from", *said), rows))


def quoted(example: Example) -> Said:
    """Answer a question by quotation, whatever the score."""
    retriever = FakeRetriever(documents=list(example.documents))
    score, shown = quoted_at_any_score(retriever, example.question)
    return Said(score, matches(example, shown), bool(example.answers))


def counted(said: Sequence[Said], threshold: float) -> str:
    """Write how many are right, wrong, and false where nothing answers."""
    sure = [one for one in said if one.score >= threshold]
    right = sum(one.right for one in sure if one.answerable)
    wrong = sum(not one.right for one in sure if one.answerable)
    false = sum(not one.answerable for one in sure)
    return f"{right}, {wrong}, {false}"


if __name__ == "__main__":
    main()
