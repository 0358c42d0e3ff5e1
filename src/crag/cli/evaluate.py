"""`crag evaluate`: your own questions, judged, with the failures to read."""

import json
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.app import app, examples
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
    print_json,
    print_table,
    progress_bar,
    refuse_overwriting,
    safe,
    say,
)

_SHARES = {"right", "retrieved", "kept"}


@app.command(
    epilog=examples(
        "crag evaluate questions.jsonl",
        "crag evaluate questions.jsonl --method rag --output rag.jsonl",
    )
)
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
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first ones.")] = None,
    concurrency: ConcurrencyOption = 4,
    as_json: JsonOption = False,
) -> None:
    """Ask your own questions, count what is right, and say where each failure was lost.

    The exit code is 1 where questions have failed.
    """
    import asyncio

    from crag.asking import evaluate as evaluation
    from crag.asking.many import read_questions
    from crag.factory.parts import choose_parts
    from crag.graph_registry import graph_named
    from crag.settings import Settings

    refuse_overwriting(output, questions)
    asked = read_questions(questions, limit)
    chosen = Settings.model_validate(assigned(settings))
    parts = choose_parts(environment(location), index_must_exist=True)
    graph = graph_named(method).build(parts)
    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        output.open("w", encoding="utf-8", errors="replace") as file,  # Before anybody is paid.
        progress_bar("asking", len(asked), quiet=as_json) as advance,
    ):
        done = count(1)
        run = evaluation.evaluate(
            graph, asked, chosen, concurrency=concurrency, ready=lambda _: advance(next(done))
        )
        rows = asyncio.run(run)
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    summary = evaluation.summarise(rows)
    if as_json:
        print_json({"method": method, **summary, "output": str(output)})
    else:
        lines = ((name.replace("_", " "), _shown(name, one)) for name, one in summary.items())
        print_table(line for line in lines if line[1])
        for row in rows:
            if row["verdict"] in {"wrong", "abstained", "failed"}:
                told = ", ".join(filter(None, (row["verdict"], row["lost"] or row["error"])))
                say(f"[yellow]{safe(told)}:[/] {safe(row['question'])} [dim]({safe(row['id'])})[/]")
        if summary["verdicts"].get("unjudged") == len(rows):
            say("[yellow]no question says what is right:[/] give 'answers', 'files', 'answerable'")
        say(f"rows: {safe(output)}")
    if summary["verdicts"].get("failed"):
        raise typer.Exit(SOME_FAILED)


def _shown(name: str, value: object) -> str:
    """Return one value of a summary, for people."""
    if isinstance(value, dict):
        return safe(", ".join(f"{number} {key.replace('_', ' ')}" for key, number in value.items()))
    if isinstance(value, list):
        return " to ".join(f"{one:.0%}" for one in value)
    if value is None:
        return ""
    return f"{value:.0%}" if name in _SHARES else f"{value:,.4g}"
