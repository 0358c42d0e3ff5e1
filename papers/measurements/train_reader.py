"""Train a reader on the rows of reader_data.py: weights, grade and card.

    python papers/measurements/train_reader.py ROWS.jsonl OUTPUT [--dev FILE…] [--set NAME=VALUE…]

An interrupted run goes on where it stopped when the same command is given again. The grade is
fitted to rows that the run does not see. Thresholds come from `crag calibrate OUTPUT --write`.
"""

import argparse
import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from crag.correction.scoring import with_title
from crag.evaluators.reader import ReaderEvaluator
from crag.models.minilm import MODEL, WEIGHTS_SHA256
from crag.models.model_card import DataFile, EvaluatorCard, write_card
from crag.models.reading_model import ReaderModel
from crag.papers.training.grading import fit_grade
from crag.papers.training.metrics import quality
from crag.papers.training.pairs import by_question, read_pairs
from crag.papers.training.reader import (
    PLAIN_GRADE,
    ReaderRecipe,
    rarity_in,
    save_reader,
    train_reader,
    unseen,
)
from crag.papers.training.reading_rows import ReadingRow, read_rows
from crag.papers.training.trainer import finish

READ_LENGTH = 320
"""Tokens of one input when reading: a chunk of our splitter, its headings and the question."""
GRADED = 1400
"""Rows at the end of the pass that the grade is fitted to, as far as their labels are sure."""
STEPS = 2000
UNSURE = "docs_"
"""Sources whose wrong sections may hold the answer as well."""
LIMITS = [
    "A score says how well a text fits the question, not whether what the text says is true.",
    "The thresholds belong to this reader and to data like those it was calibrated on.",
]


def main() -> None:
    """Train, fit, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--dev", type=Path, action="append", default=[])
    parser.add_argument("--licence")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    changes = {"steps": STEPS} | dict(part.split("=", 1) for part in given.set)
    recipe = ReaderRecipe.model_validate(changes)
    rows = read_rows(given.rows)
    held = [r for r in unseen(rows, recipe, GRADED) if not r.source.startswith(UNSURE)]
    trained = train_reader(recipe, rows, given.output)
    rarity = rarity_in(rows)
    save_reader(trained.weights, PLAIN_GRADE, rarity, given.output)
    grade = fit_grade(ReaderModel(given.output, READ_LENGTH), held)
    save_reader(trained.weights, grade, rarity, given.output)
    card = EvaluatorCard(
        kind="reader",
        base=MODEL,
        base_sha256=WEIGHTS_SHA256,
        max_length=READ_LENGTH,
        data=[described(given.rows, rows, given.licence)],
        recipe=recipe.model_dump(mode="json"),
        limits=LIMITS,
    )
    write_card(given.output, card)
    metrics = measured(ReaderEvaluator.changed(given.output), given.dev)
    write_card(given.output, card.model_copy(update={"metrics": metrics}))
    finish(given.output)
    print(json.dumps(metrics, indent=2))


def described(path: Path, rows: Sequence[ReadingRow], licence: str | None) -> DataFile:
    """Return what the card says of the rows; a positive one holds the answer."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    positives = sum(row.answer == 1 for row in rows)
    return DataFile(
        name=path.name, sha256=digest, pairs=len(rows), positives=positives, licence=licence
    )


def measured(reader: ReaderEvaluator, files: Iterable[Path]) -> dict[str, dict[str, float]]:
    """Return the quality on each development set, as `crag train` measures it."""
    found = {}
    for path in files:
        groups = by_question(read_pairs(path))
        pairs = [pair for group in groups.values() for pair in group]
        scores = [
            score
            for question, group in groups.items()
            for score in reader.score(question, [with_title(p.title, p.text) for p in group])
        ]
        found[path.stem] = {k: round(v, 4) for k, v in quality(pairs, scores).items()}
    return found


if __name__ == "__main__":
    main()
