"""`crag calibrate`: fit thresholds to labelled data and show their effect."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crag.charts import require_matplotlib
from crag.cli.terminal import plain_table, print_json, progress_bar
from crag.errors import TrainingError
from crag.evaluators import load_evaluator
from crag.factory import choose_model, choose_prompts
from crag.models.inference import use_runtime
from crag.models.model_card import CARD, read_card, write_card
from crag.papers.training.calibrate import Proportion, Report, calibrate
from crag.papers.training.pairs import LabelRule
from crag.papers.training.pictures import draw_report
from crag.papers.training.thresholds import Aim, Costs
from crag.runtime.environment import Environment
from crag.state import ACTIONS

_COSTS = 3


def run(  # noqa: PLR0913 - the options of the command
    files: Sequence[Path],
    evaluator: str,
    labels: LabelRule,
    aim: Aim,
    *,
    seed: int,
    compat: Literal["official"] | None,
    write: bool,
    pictures: Path | None,
    as_json: bool,
) -> None:
    """Calibrate, show the report, and write the card and the charts if requested."""
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
        report = calibrate(judge, files, aim=aim, labels=labels, seed=seed, progress=advance)
    written = write_thresholds(evaluator, report) if write else None
    drawn = draw_report(report, pictures) if pictures is not None else []
    if as_json:
        places = {"card": written, "pictures": [str(path) for path in drawn]}
        print_json(_plain(report) | places)
        return
    console = Console(highlight=False)
    _show(report, console)
    _show_use(report, evaluator, written, drawn, console)


def aim_of(precision: float | None, discarded: float | None, costs: str | None) -> Aim:
    """Return the aim from the options; missing ones have their defaults.

    Raises:
        TrainingError: a number is out of range, or both shares and costs are given.
    """
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
    if Path(evaluator).is_dir() and read_card(Path(evaluator)) is None:
        message = f"{evaluator} has no {CARD} to write the thresholds into; leave out --write"
        raise TrainingError(message)


def write_thresholds(evaluator: str, report: Report) -> str | None:
    """Write the calibration into the card of the evaluator's folder, and return its path."""
    folder = Path(evaluator)
    if not folder.is_dir() or (card := read_card(folder)) is None:
        return None
    write_card(folder, card.model_copy(update={"calibration": report.calibration}))
    return str(folder / CARD)


def _plain(report: Report) -> dict[str, Any]:
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


def _show(report: Report, console: Console) -> None:
    texts = sum(file.pairs for file in report.calibration.data)
    relevant = sum(file.positives for file in report.calibration.data)
    console.print(f"{report.calibration.questions} questions, {texts} texts, {relevant} relevant")
    console.print(f"aim: {report.calibration.aim}\n", soft_wrap=True)
    console.print(_thresholds(report), _confusion(report), _trade_off(report), sep="\n")
    metrics = ", ".join(f"{name} {value:.3f}" for name, value in report.metrics.items())
    console.print(f"texts: {metrics}", soft_wrap=True)
    for note in report.notes:
        console.print(f"[yellow]note[/] {escape(note)}", soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table: Table = plain_table(title=title, title_style="bold", title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _thresholds(report: Report) -> Table:
    table = _table("Thresholds", "", "value", "95 % interval", "here")
    table.columns[-1].justify = "left"
    (low, high), (lowest, highest) = report.upper_interval, report.lower_interval
    right = f"of those judged Correct {_percent(report.precision)} are right"
    lost = f"of the usable sets {_percent(report.discarded)} are discarded"
    upper, lower = report.thresholds["upper"], report.thresholds["lower"]
    table.add_row("upper", f"{upper:g}", f"{low:.3f} to {high:.3f}", right)
    table.add_row("lower", f"{lower:g}", f"{lowest:.3f} to {highest:.3f}", lost)
    return table


def _percent(share: Proportion) -> str:
    return f"{share.value:.1%} ({share.low:.0%} to {share.high:.0%})"


def _confusion(report: Report) -> Table:
    table = _table("\nQuestions by ideal action", "ideal", *(f"judged {name}" for name in ACTIONS))
    for ideal, row in report.confusion.items():
        table.add_row(ideal, *(str(row[name]) for name in ACTIONS))
    table.add_row("share", *(f"{report.actions[name]:.0%}" for name in ACTIONS))
    return table


def _trade_off(report: Report) -> Table:
    columns = ("Correct", "of these right", "Incorrect", "usable discarded")
    table = _table("\nWhat other thresholds would do", "threshold", *columns)
    for threshold, *shares in report.trade_off:
        table.add_row(f"{threshold:g}", *(f"{share:.1%}" for share in shares))
    return table


def _show_use(
    report: Report, evaluator: str, written: str | None, drawn: Sequence[Path], console: Console
) -> None:
    upper, lower = report.thresholds["upper"], report.thresholds["lower"]
    if written:
        console.print(f"written to {escape(written)}", soft_wrap=True)
    else:
        console.print(f"use them: crag ask --set upper={upper} --set lower={lower} …")
        if Path(evaluator).is_dir():
            console.print("or write them into its card with --write")
    for path in drawn:
        console.print(f"drawn: {escape(str(path))}", soft_wrap=True)
