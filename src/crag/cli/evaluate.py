"""`crag evaluate`: your own questions, judged, with the failures to read."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from crag.cli import options
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
    location: options.Index = None,
    method: options.Method = "crag",
    settings: options.Settings = None,
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write, one for each question.")
    ] = Path("evaluation.jsonl"),
    concurrency: options.Concurrency = 4,
    as_json: options.Json = False,
) -> None:
    """Ask your own questions, count what is right, and say where each failure was lost.

    The exit code is 1 where questions have failed.
    """
    from crag.asking.evaluate import judged, summarise
    from crag.asking.many import Row, State, ask_all, read_questions

    asked = {question.id: question for question in read_questions(questions)}
    if output.exists() and not output.is_file():
        raise DataError(output, "is no file: name one")
    if output.exists() and output.samefile(questions):
        raise DataError(output, f"writing it would overwrite {questions}, which is read")
    output.parent.mkdir(parents=True, exist_ok=True)
    chosen, done = (environment(location), method, assigned(settings)), dict[str, Row]()
    # What an earlier run wrote is replaced as a whole, and stays where this one fails; that nothing
    # can be written there is told before anything is asked.
    with (
        TemporaryDirectory(dir=output.parent, prefix=".crag-") as folder,
        progress_bar("asking", quiet=as_json) as advance,
    ):

        def ready(row: Row, state: State) -> None:
            done[row["id"]] = judged(asked[row["id"]], row, state)
            advance(len(done), len(asked))

        ask_all([*asked.values()], chosen, ready, concurrency)
        rows, new = [done[name] for name in asked], Path(folder, output.name)
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        new.write_text("".join(lines), "utf-8")
        new.replace(output)
    summary = summarise(rows)
    if not as_json:
        for row in rows:
            if row["verdict"] in {"wrong", "abstained", "failed"}:
                told = ", ".join(filter(None, (row["verdict"], row["lost"] or row["error"])))
                say(f"[yellow]{safe(told)}:[/] {safe(row['question'])} [dim]({safe(row['id'])})[/]")
        if summary["right"] is None:
            say("[yellow]no question says what is right:[/] give 'answers', 'files', 'answerable'")
    print_summary({"method": method, **summary, "output": str(output)}, as_json=as_json)
    if summary["verdicts"].get("failed"):
        raise typer.Exit(SOME_FAILED)
