"""Measure whether thresholds fitted to an index without labels help over real documentation.

    python papers/measurements/docs_calibration.py DOCS [--only NAME…] [--keep FOLDER]

For each corpus, `crag calibrate` fits thresholds to questions that it makes of the corpus. The
cheapest for those, the same without a raised one, and the ones in use are then tried on the
corpus's questions of people (`documentation.py`). FOLDER keeps the indexes.
"""

from pathlib import Path

from documentation import Asked, indexed_corpora, is_right, parser_of, questions

from crag.correction.scoring import LOWEST
from crag.evaluators import load_evaluator
from crag.index import DocumentIndex
from crag.papers.experiments.report import table
from crag.papers.training.made_questions import MadeQuestion
from crag.papers.training.unlabelled import (
    COSTS,
    Effect,
    IndexReport,
    Judged,
    best_quotation,
    calibrate_on,
    effect,
)
from crag.parts import Evaluator
from crag.settings import Settings
from crag.wording import plainly_asked


def main() -> None:
    """Fit and try the thresholds of each corpus, and print the tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--questions", type=int, default=150, help="to make of each corpus")
    given = parser.parse_args()
    evaluator, lines, effects = load_evaluator(), [], []
    rows = questions(given.docs, given.only)
    for index, asked in indexed_corpora(given.docs, rows, given.keep):
        report = calibrate_on(evaluator, index, questions=given.questions)
        people = [_judged(evaluator, index, one) for one in asked]
        lines.append([asked[0].corpus, *_thresholds(report)])
        for name in ("in_use", "cheapest", "fitted"):
            limits = getattr(report, name)
            found = effect(people, [limits] * len(people), COSTS)
            effects.append([asked[0].corpus, name.replace("_", " "), *_counts(found)])
        made = ((name, getattr(report, f"effect_{name}")) for name in ("in_use", "fitted"))
        effects += [["made of it", name.replace("_", " "), *_counts(one)] for name, one in made]
        # Each corpus takes minutes, so that what is known is shown at once.
        fitted, tried = table(("corpus", *_FITTED), lines), table(_TRIED, effects)
        print(fitted, tried, sep="\n\n", flush=True)


_FITTED = (
    "answered", "near", "far", "left out", "upper", "lower", "sure", "action saves", "sure saves",
)  # fmt: skip


_TRIED = ("questions", "thresholds", *Effect._fields)


def _judged(evaluator: Evaluator, index: DocumentIndex, one: Asked) -> Judged:
    settings = Settings()
    question = plainly_asked(one.question)
    documents = index.search(question, settings.k)
    scores, quoted, _ = best_quotation(evaluator, question, documents, settings)
    made = MadeQuestion(question, "answered" if one.answerable else "near")
    right = quoted is not None and is_right(quoted.text, one)
    return Judged(made, tuple(scores), quoted.score if quoted else LOWEST, right)


def _thresholds(report: IndexReport) -> list[str]:
    pairs = zip(report.in_use, report.cheapest, strict=True)
    savings = (report.action_saving, report.sure_saving)
    return [
        *map(str, (report.answered, report.near, report.far, report.left_out)),
        *(f"{old:g} → {new:g}" for old, new in pairs if old is not None and new is not None),
        *(f"{one.mean:.1f} ({one.low:.1f} to {one.high:.1f})" for one in savings if one),
    ]


def _counts(found: Effect) -> list[str]:
    return [f"{count:g}" if isinstance(count, int) else f"{count:.1f}" for count in found]


if __name__ == "__main__":
    main()
