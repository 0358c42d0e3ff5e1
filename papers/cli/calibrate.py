"""`crag calibrate`: fit thresholds to labelled data, and show their effect."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli import app
from crag.cli.options import JsonOption
from crag.cli.terminal import environment, print_json, print_table, progress_bar, safe, say
from crag.errors import TrainingError
from crag.extras import require
from crag.papers.cli.command import command
from crag.papers.cli.options import LabelledData, LabelsOption, SeedOption
from crag.plain import counted

if TYPE_CHECKING:
    from crag.models.model_card import Calibration
    from crag.papers.evaluator.calibrate import Proportion, Report

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
    seed: SeedOption = 0,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Write the thresholds into the card of the evaluator's folder; those of the "
            f"packaged one into {WRITTEN}, for CRAG_EVALUATOR.",
        ),
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for charts.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the thresholds of an evaluator to your labelled data."""
    from crag.factory.parts import choose_evaluator, choose_model, choose_prompts
    from crag.papers.evaluator.thresholds import Aim

    aim = Aim(precision=precision, discarded=discarded)
    if write:
        _require_card(evaluator)
    require("train", "crag calibrate", "sklearn")
    from crag.papers.evaluator import calibrate as calibration
    from crag.papers.evaluator.pictures import draw_report, require_drawable

    if pictures is not None:
        require_drawable(pictures)
    chosen = environment()
    judge = choose_evaluator(chosen, choose_model(chosen), choose_prompts(chosen), evaluator)
    with progress_bar("scoring", quiet=as_json) as advance:
        report = calibration.calibrate(
            judge, data, aim=aim, labels=labels, seed=seed, progress=advance
        )
    written = write_thresholds(evaluator, report.calibration) if write else None
    drawn: list[Path] = []
    if pictures is not None:
        drawn = draw_report(report.evidence, report.thresholds, pictures)
    if as_json:
        print_json(_plain(report) | {"card": written, "pictures": [str(path) for path in drawn]})
        return
    _show(report)
    if written:
        say(f"written to {safe(written)}")
        if evaluator in _PACKAGED:
            say(f'use them: evaluator = "{WRITTEN}" in crag.toml, or CRAG_EVALUATOR={WRITTEN}')
    else:
        upper, lower = report.thresholds["upper"], report.thresholds["lower"]
        say(f"use them: crag ask --set upper={upper:.6g} --set lower={lower:.6g} …, or --write")
    for path in drawn:
        say(f"drawn: {safe(path)}")


def _require_card(evaluator: str) -> None:
    """Check before the work that --write has a card to write to."""
    from crag.models.model_card import CARD, read_card

    if evaluator in _PACKAGED:
        return
    if not Path(evaluator).is_dir() or read_card(Path(evaluator)) is None:
        message = f"{evaluator} has no {CARD} to write the thresholds into; leave out --write"
        raise TrainingError(message)


def write_thresholds(evaluator: str, calibration: "Calibration") -> str:
    """Write a calibration into the card of the evaluator's folder, and return its path.

    That of the packaged reader is a card alone, in `WRITTEN`. Thresholds that the calibration does
    not have, which are those of quotations, stay as they are.
    """
    from crag.evaluators import packaged_reader
    from crag.models.model_card import CARD, ModelCard, read_card
    from crag.papers.saving import write_card

    is_packaged = evaluator in _PACKAGED
    folder = WRITTEN if is_packaged else Path(evaluator)
    card: ModelCard | None = packaged_reader().card if is_packaged else read_card(folder)
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


def _plain(report: "Report") -> dict[str, Any]:
    """Return the report without its texts."""
    plain: dict[str, Any] = {
        field.name: getattr(report, field.name)
        for field in fields(report)
        if field.name != "evidence"
    }
    plain["precision"] = report.precision._asdict()
    plain["discarded"] = report.discarded._asdict()
    plain["trade_off"] = [row._asdict() for row in report.trade_off]
    plain["calibration"] = report.calibration.model_dump(mode="json")
    return plain


def _show(report: "Report") -> None:
    from rich.table import Column

    from crag.state import ACTIONS

    def right(*names: str) -> list[Column]:
        return [Column(name, justify="right") for name in names]

    texts = sum(file.pairs for file in report.calibration.data)
    relevant = sum(file.positives for file in report.calibration.data)
    questions = counted(report.calibration.questions, "question")
    say(f"{questions}, {counted(texts, 'text')}, {relevant} relevant")
    say(f"aim: {report.calibration.aim}\n")
    (low, high), (lowest, highest) = report.upper_interval, report.lower_interval
    upper, lower = report.thresholds["upper"], report.thresholds["lower"]
    correct = f"of those judged Correct {_percent(report.precision)} are right"
    lost = f"of the usable sets {_percent(report.discarded)} are discarded"
    rows = [
        ("upper", f"{upper:.4g}", f"{low:.3f} to {high:.3f}", correct),
        ("lower", f"{lower:.4g}", f"{lowest:.3f} to {highest:.3f}", lost),
    ]
    print_table(rows, "", *right("value", "95 % interval"), "here", title="Thresholds")
    table = [
        (ideal, *(str(row[name]) for name in ACTIONS)) for ideal, row in report.confusion.items()
    ]
    table.append(("share", *(f"{report.actions[name]:.0%}" for name in ACTIONS)))
    heads = right(*(f"judged {name}" for name in ACTIONS))
    print_table(table, "ideal", *heads, title="\nQuestions by ideal action")
    others = [
        (f"{threshold:.4g}", *(f"{share:.1%}" for share in shares))
        for threshold, *shares in report.trade_off
    ]
    heads = right("Correct", "of these right", "Incorrect", "usable discarded")
    print_table(others, "threshold", *heads, title="\nWhat other thresholds would do")
    say("texts: " + ", ".join(f"{name} {value:.3f}" for name, value in report.metrics.items()))
    for note in report.notes:
        say(f"[yellow]note[/] {safe(note)}")


def _percent(share: "Proportion") -> str:
    return f"{share.value:.1%} ({share.low:.0%} to {share.high:.0%})"
