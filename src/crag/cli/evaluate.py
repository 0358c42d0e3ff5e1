"""`crag evaluate`: your own questions, judged, with the failures to read."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from crag.cli.options import (
    ConcurrencyOption,
    IndexOption,
    JsonOption,
    MethodOption,
    SettingsOption,
)
from crag.cli.terminal import (
    SOME_FAILED,
    assigned,
    environment,
    print_summary,
    progress_bar,
    safe,
    say,
)
from crag.errors import DataError


def evaluate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines: question, and answers, files or evidence; answerable=false."
        ),
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write, one for each question.")
    ] = Path("evaluation.jsonl"),
    concurrency: ConcurrencyOption = 4,
    as_json: JsonOption = False,
) -> None:
    """Ask your own questions, count what is right, and say where each failure was lost.

    The exit code is 1 where questions have failed.
    """
    from crag.asking.evaluate import judged, summarise
    from crag.asking.many import answer_all, read_questions

    if output.exists() and not output.is_file():
        raise DataError(output, "is no file: name one")
    if output.exists() and questions.exists() and output.samefile(questions):
        raise DataError(output, f"writing it would overwrite {questions}, which is read")
    asked = read_questions(questions)
    chosen = (environment(location).shared(), method, assigned(settings))
    output.parent.mkdir(parents=True, exist_ok=True)
    # What an earlier run wrote is replaced as a whole, and stays where this one fails.
    with (
        TemporaryDirectory(dir=output.parent, prefix=".crag-") as folder,
        progress_bar("asking", quiet=as_json) as advance,
    ):
        rows, _ = answer_all(
            asked, chosen, new := Path(folder, output.name),
            judge=judged, concurrency=concurrency, progress=advance,
        )  # fmt: skip
        new.replace(output)
    summary = summarise(rows)
    if not as_json:
        for row in rows:
            if row["verdict"] in {"wrong", "abstained", "failed"}:
                told = ", ".join(filter(None, (row["verdict"], row["lost"] or row["error"])))
                say(f"[yellow]{safe(told)}:[/] {safe(row['question'])} [dim]({safe(row['id'])})[/]")
        if summary["verdicts"].get("unjudged") == len(rows):
            say("[yellow]no question says what is right:[/] give 'answers', 'files', 'answerable'")
    print_summary({"method": method, **summary, "output": str(output)}, as_json=as_json)
    if summary["verdicts"].get("failed"):
        raise typer.Exit(SOME_FAILED)
