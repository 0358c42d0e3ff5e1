"""`crag evaluate`: your own questions, judged, with the failures to read."""

import json
from itertools import count
from pathlib import Path
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
    import asyncio

    from crag.asking.evaluate import judged, summarise
    from crag.asking.many import ask_all, read_questions
    from crag.cli.run import opened

    if output.is_file() and questions.is_file() and output.samefile(questions):
        raise DataError(output, f"writing it would overwrite {questions}, which is read")
    asked, documents = read_questions(questions), opened(location, settings, None, method)
    with progress_bar("asking", len(asked), quiet=as_json) as advance:
        done = count(1)
        run = ask_all(
            documents.graph, asked, documents.settings,
            concurrency=concurrency, ready=lambda _: advance(next(done)),
        )  # fmt: skip
        answers = asyncio.run(run)
    rows = [judged(one, *found) for one, found in zip(asked, answers, strict=True)]
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(lines), "utf-8", errors="replace")
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
