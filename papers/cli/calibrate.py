"""`crag calibrate`: fit thresholds to labelled data, and show their effect."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crag.cli.app import app
from crag.cli.terminal import environment, progress_bar, safe, say
from crag.errors import CragError
from crag.papers.cli.command import (
    LabelledData,
    LabelsOption,
    command,
)
from crag.plain import counted

if TYPE_CHECKING:
    from crag.models.model_card import Calibration
    from crag.papers.evaluator.calibrate import Report

_PACKAGED = {"default", "reader"}
"""Names of the reader that ships with this package."""
WRITTEN = Path(".crag/evaluator")
"""Where the thresholds of the packaged reader are written; the folder is an evaluator then."""


@command(
    app,
    "crag calibrate labelled.jsonl",
    "crag calibrate labelled.jsonl --evaluator mine --precision 0.95 --write",
    extra="train",
)
def calibrate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: LabelledData,
    evaluator: Annotated[
        str, typer.Option(help="Name of an evaluator, or the folder of one.")
    ] = "default",
    labels: LabelsOption = "auto",
    precision: Annotated[
        float, typer.Option(help="Share of the questions judged Correct that are right.")
    ] = 0.92,
    discarded: Annotated[
        float, typer.Option(help="Most of the usable sets to discard, as a share.")
    ] = 0.02,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Write the thresholds into the card of the evaluator's folder; those of the "
            f"packaged one into {WRITTEN}, for CRAG_EVALUATOR.",
        ),
    ] = False,
) -> None:
    """Fit the thresholds of an evaluator to your labelled data."""
    from crag.factory.parts import choose_evaluator, choose_model, choose_prompts
    from crag.papers.evaluator import calibrate as calibration

    aim = calibration.Aim(precision=precision, discarded=discarded)
    if write:
        _require_card(evaluator)
    chosen = environment()
    judge = choose_evaluator(chosen, choose_model(chosen), choose_prompts(chosen), evaluator)
    with progress_bar("scoring", quiet=False) as advance:
        report = calibration.calibrate(judge, data, aim=aim, labels=labels, progress=advance)
    _show(report)
    if write:
        say(f"written to {safe(write_thresholds(evaluator, report.calibration))}")
        if evaluator in _PACKAGED:
            say(f'use them: evaluator = "{WRITTEN}" in crag.toml, or CRAG_EVALUATOR={WRITTEN}')
    else:
        upper, lower = report.calibration.upper, report.calibration.lower
        say(f"use them: crag ask --set upper={upper:.6g} --set lower={lower:.6g} …, or --write")


def _require_card(evaluator: str) -> None:
    """Check before the work that --write has a card to write to."""
    from crag.models.model_card import CARD, read_card

    if evaluator in _PACKAGED:
        return
    if not Path(evaluator).is_dir() or read_card(Path(evaluator)) is None:
        message = f"{evaluator} has no {CARD} to write the thresholds into; leave out --write"
        raise CragError(message)


def write_thresholds(evaluator: str, calibration: "Calibration") -> str:
    """Write a calibration into the card of the evaluator's folder, and return its path.

    That of the packaged reader is a card alone, in `WRITTEN`. Thresholds that the calibration does
    not have, which are those of quotations, stay as they are.
    """
    from crag.evaluators import ReaderEvaluator
    from crag.models.model_card import CARD, ModelCard, read_card
    from crag.papers.files import write_card

    is_packaged = evaluator in _PACKAGED
    folder = WRITTEN if is_packaged else Path(evaluator)
    card: ModelCard | None = ReaderEvaluator.packaged().card if is_packaged else read_card(folder)
    assert card is not None  # noqa: S101 - `_require_card` has looked
    if known := card.calibration:
        kept = {
            name: getattr(known, name)
            for name in ("quote", "closest")
            if getattr(calibration, name) is None
        }
        calibration = calibration.model_copy(update=kept)
    folder.mkdir(parents=True, exist_ok=True)
    write_card(folder, card.model_copy(update={"calibration": calibration}))
    return str(folder / CARD)


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.table import Table

    from crag.state import ACTIONS

    fitted = report.calibration
    texts = sum(file.pairs for file in fitted.data)
    relevant = sum(file.positives for file in fitted.data)
    questions = counted(fitted.questions, "question")
    say(f"{questions}, {counted(texts, 'text')}, {relevant} relevant")
    say(f"aim: {fitted.aim}\n")
    say(f"upper {fitted.upper:.4g}: of those judged Correct {report.precision} are right")
    say(f"lower {fitted.lower:.4g}: of the usable sets {report.discarded} are discarded\n")
    table = Table("ideal", box=None, pad_edge=False, title="Questions by ideal action")
    for name in ACTIONS:
        table.add_column(f"judged {name}", justify="right")
    for ideal, row in report.confusion.items():
        table.add_row(ideal, *(str(row[one]) for one in ACTIONS))
    Console(highlight=False).print(table)
    say("texts: " + ", ".join(f"{name} {value:.3f}" for name, value in report.metrics.items()))
