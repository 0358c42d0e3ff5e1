"""`crag calibrate`: fit thresholds to labelled data and show their effect."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crag.cli import app
from crag.cli.commands import command
from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, print_table, progress_bar, safe, say
from crag.errors import TrainingError
from crag.papers.commands.options import LabelledData, LabelsOption

if TYPE_CHECKING:
    from crag.papers.training.calibrate import Proportion, Report
    from crag.papers.training.thresholds import Aim

_COSTS = 3


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
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 0,
    compat: Annotated[
        Literal["official"] | None,
        typer.Option(help="Score a T5 as the official code does: one by one, padded to 512."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the thresholds into the evaluator's card.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for charts.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the thresholds of an evaluator to your labelled data."""
    from crag.charts import require_matplotlib
    from crag.evaluators import load_evaluator
    from crag.factory import choose_model, choose_prompts
    from crag.models.inference import use_runtime
    from crag.papers.training import calibrate as calibration
    from crag.papers.training.pictures import draw_report
    from crag.runtime.environment import Environment

    aim = _aim_of(precision, discarded, costs)
    if pictures is not None:
        require_matplotlib("train")
    if write:
        _require_card(evaluator)
    environment = Environment()
    use_runtime(environment.inference)
    judge = load_evaluator(
        evaluator,
        model=choose_model(environment),
        compat=compat,
        prompts=choose_prompts(environment),
    )
    with progress_bar("scoring", quiet=as_json) as advance:
        report = calibration.calibrate(
            judge, data, aim=aim, labels=labels, seed=seed, progress=advance
        )
    written = write_thresholds(evaluator, report) if write else None
    drawn = draw_report(report, pictures) if pictures is not None else []
    if as_json:
        places = {"card": written, "pictures": [str(path) for path in drawn]}
        print_json(_plain(report) | places)
        return
    _show(report)
    if written:
        say(f"written to {safe(written)}")
    else:
        upper, lower = report.thresholds["upper"], report.thresholds["lower"]
        say(f"use them: crag ask --set upper={upper} --set lower={lower} …")
        if Path(evaluator).is_dir():
            say("or write them into its card with --write")
    for path in drawn:
        say(f"drawn: {safe(path)}")


def _aim_of(precision: float | None, discarded: float | None, costs: str | None) -> "Aim":
    """Return the aim from the options; missing ones have their defaults.

    Raises:
        TrainingError: a number is out of range, or both shares and costs are given.
    """
    from crag.papers.training.thresholds import Aim, Costs

    shares = {"precision": precision, "discarded": discarded}
    given = {name: value for name, value in shares.items() if value is not None}
    if costs is None:
        return replace(Aim(), **given)  # type: ignore[arg-type]
    if given:
        message = "--costs replaces --precision and --discarded: give one or the other"
        raise TrainingError(message)
    try:
        wrong, needless, lost = (float(cost) for cost in costs.split(","))
    except ValueError as error:
        message = f"--costs {costs!r} is not {_COSTS} numbers: write WRONG,NEEDLESS,DISCARDED"
        raise TrainingError(message) from error
    return Aim(costs=Costs(wrong=wrong, needless=needless, discarded=lost))


def _require_card(evaluator: str) -> None:
    """Check before the work that --write has an evaluator's folder to write to."""
    from crag.models.model_card import CARD, read_card

    if Path(evaluator).is_dir() and read_card(Path(evaluator)) is None:
        message = f"{evaluator} has no {CARD} to write the thresholds into; leave out --write"
        raise TrainingError(message)


def write_thresholds(evaluator: str, report: "Report") -> str | None:
    """Write the calibration into the card of the evaluator's folder, and return its path."""
    from crag.models.model_card import CARD, read_card, write_card

    folder = Path(evaluator)
    if not folder.is_dir() or (card := read_card(folder)) is None:
        return None
    write_card(folder, card.model_copy(update={"calibration": report.calibration}))
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
    texts = sum(file.pairs for file in report.calibration.data)
    relevant = sum(file.positives for file in report.calibration.data)
    say(f"{report.calibration.questions} questions, {texts} texts, {relevant} relevant")
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
