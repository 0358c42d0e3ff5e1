"""`crag calibrate`: fit thresholds to labelled data, and show their effect."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli import app
from crag.cli.options import JsonOption
from crag.cli.terminal import environment, print_json, print_table, progress_bar, safe, say
from crag.errors import TrainingError
from crag.extras import require
from crag.papers.cli.command import command
from crag.papers.cli.options import LabelledData, LabelsOption
from crag.plain import counted

if TYPE_CHECKING:
    from crag.models.model_card import Calibration
    from crag.papers.evaluator.calibrate import Proportion, Report
    from crag.papers.evaluator.thresholds import Aim, Costs

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
        float | None,
        typer.Option(help="Share of the questions judged Correct that are right. Default: 0.92."),
    ] = None,
    discarded: Annotated[
        float | None,
        typer.Option(help="Most of the usable sets to discard, as a share. Default: 0.02."),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="WRONG,NEEDLESS,DISCARDED",
            help="Minimise these costs instead: of a wrong Correct, a needless Ambiguous, and a "
            "discarded usable set.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
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
    aim = _aim_of(precision, discarded, costs)
    if write:
        _require_card(evaluator)
    require("train", "crag calibrate", "sklearn")
    from crag.papers.evaluator import calibrate as calibration
    from crag.papers.evaluator.pictures import draw_report, require_drawable

    if pictures is not None:
        require_drawable(pictures)
    judge = _judge(evaluator)
    with progress_bar("scoring", quiet=as_json) as advance:
        report = calibration.calibrate(
            judge, data, aim=aim, labels=labels, seed=seed, progress=advance
        )
    written = write_thresholds(evaluator, report.calibration) if write else None
    drawn = draw_report(report, pictures) if pictures is not None else []
    if as_json:
        places = {"card": written, "pictures": [str(path) for path in drawn]}
        print_json(_plain(report) | places)
        return
    _show(report)
    thresholds = report.thresholds
    _show_use(evaluator, (thresholds["upper"], thresholds["lower"]), written)
    for path in drawn:
        say(f"drawn: {safe(path)}")


def _aim_of(precision: float | None, discarded: float | None, costs: str | None) -> "Aim":
    """Return the aim from the options; missing ones have their defaults.

    Raises:
        TrainingError: a number is out of range, or both shares and costs are given.
    """
    from crag.papers.evaluator.thresholds import Aim

    shares = {"precision": precision, "discarded": discarded}
    given = {name: value for name, value in shares.items() if value is not None}
    if costs is None:
        return replace(Aim(), **given)  # type: ignore[arg-type]
    if given:
        message = "--costs replaces --precision and --discarded: give one or the other"
        raise TrainingError(message)
    return Aim(costs=_costs_of(costs))


def _costs_of(costs: str) -> "Costs":
    from crag.papers.evaluator.thresholds import Costs

    try:
        wrong, needless, lost = (float(number) for number in costs.split(","))
    except ValueError:
        message = f"--costs {costs!r} is not three numbers: write WRONG,NEEDLESS,DISCARDED"
        raise TrainingError(message) from None
    return Costs(wrong=wrong, needless=needless, discarded=lost)


def _judge(name: str) -> Any:
    from crag.factory.parts import choose_evaluator, choose_model, choose_prompts

    chosen = environment()
    return choose_evaluator(chosen, choose_model(chosen), choose_prompts(chosen), name)


def _require_card(evaluator: str) -> None:
    """Check before the work that --write has a card to write to."""
    from crag.models.model_card import CARD, read_card

    if evaluator in _PACKAGED:
        return
    if not Path(evaluator).is_dir() or read_card(Path(evaluator)) is None:
        message = f"{evaluator} has no {CARD} to write the thresholds into; leave out --write"
        raise TrainingError(message)


def write_thresholds(evaluator: str, calibration: "Calibration") -> str | None:
    """Write a calibration into the card of the evaluator's folder, and return its path.

    That of the packaged reader is a card alone, in `WRITTEN`. Thresholds that the calibration does
    not have, which are those of quotations, stay as they are.
    """
    from crag.evaluators import packaged_reader
    from crag.models.model_card import CARD, read_card
    from crag.papers.evaluator.artefacts import write_card

    is_packaged = evaluator in _PACKAGED
    folder = WRITTEN if is_packaged else Path(evaluator)
    card = packaged_reader().card if is_packaged else folder.is_dir() and read_card(folder)
    if not card:
        return None
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


def _show_use(evaluator: str, thresholds: Sequence[float], written: str | None) -> None:
    upper, lower = thresholds
    if not written:
        say(f"use them: crag ask --set upper={upper} --set lower={lower} …")
        if evaluator in _PACKAGED or Path(evaluator).is_dir():
            say("or write them into its card with --write")
        return
    say(f"written to {safe(written)}")
    if evaluator in _PACKAGED:
        say(f'use them: evaluator = "{WRITTEN}" in crag.toml, or CRAG_EVALUATOR={WRITTEN}')


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
    texts = sum(file.pairs for file in report.calibration.data)
    relevant = sum(file.positives for file in report.calibration.data)
    questions = counted(report.calibration.questions, "question")
    say(f"{questions}, {counted(texts, 'text')}, {relevant} relevant")
    say(f"aim: {report.calibration.aim}\n")
    _show_thresholds(report)
    _show_confusion(report)
    _show_trade_off(report)
    metrics = ", ".join(f"{name} {value:.3f}" for name, value in report.metrics.items())
    say(f"texts: {metrics}")
    for note in report.notes:
        say(f"[yellow]note[/] {safe(note)}")


def _table(
    title: str, rows: Iterable[Sequence[str]], first: str, *numbers: str, last: Sequence[str] = ()
) -> None:
    """Print a table with numbers at the right of their columns, and perhaps words as the last."""
    from rich.table import Column

    right = (Column(one, justify="right") for one in numbers)
    print_table(rows, first, *right, *last, title=title)


def _show_thresholds(report: "Report") -> None:
    (low, high), (lowest, highest) = report.upper_interval, report.lower_interval
    right = f"of those judged Correct {_percent(report.precision)} are right"
    lost = f"of the usable sets {_percent(report.discarded)} are discarded"
    upper, lower = report.thresholds["upper"], report.thresholds["lower"]
    rows = (
        ("upper", f"{upper:g}", f"{low:.3f} to {high:.3f}", right),
        ("lower", f"{lower:g}", f"{lowest:.3f} to {highest:.3f}", lost),
    )
    _table("Thresholds", rows, "", "value", "95 % interval", last=["here"])


def _percent(share: "Proportion") -> str:
    return f"{share.value:.1%} ({share.low:.0%} to {share.high:.0%})"


def _show_confusion(report: "Report") -> None:
    from crag.state import ACTIONS

    rows = [
        (ideal, *(str(row[name]) for name in ACTIONS)) for ideal, row in report.confusion.items()
    ]
    rows.append(("share", *(f"{report.actions[name]:.0%}" for name in ACTIONS)))
    heads = (f"judged {name}" for name in ACTIONS)
    _table("\nQuestions by ideal action", rows, "ideal", *heads)


def _show_trade_off(report: "Report") -> None:
    rows = (
        (f"{threshold:g}", *(f"{share:.1%}" for share in shares))
        for threshold, *shares in report.trade_off
    )
    columns = ("threshold", "Correct", "of these right", "Incorrect", "usable discarded")
    _table("\nWhat other thresholds would do", rows, *columns)
