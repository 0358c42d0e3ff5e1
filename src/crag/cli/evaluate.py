"""`crag evaluate`: your own questions, judged, with the failures to read."""

import json
from itertools import count
from pathlib import Path
from typing import Annotated, Any

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
        "crag evaluate questions.jsonl --judge gpt-4o-mini",
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
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Chat model that judges the answers: supported by what was found, about the "
            "question, as a right answer.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask your own questions, count what is right, and say where each failure was lost.

    The exit code is 1 where questions have failed.
    """
    import asyncio

    from crag.asking import evaluate as evaluation
    from crag.asking.many import read_questions
    from crag.factory.parts import choose_model, choose_parts, choose_prompts
    from crag.graph_registry import graph_named
    from crag.settings import Settings

    refuse_overwriting(output, questions)
    asked = read_questions(questions, limit)
    chosen, place = Settings.model_validate(assigned(settings)), environment(location)
    graph = graph_named(method).build(choose_parts(place, index_must_exist=True))
    # The server of the answering model has the judge too, where there is one.
    named = place.model_copy(update={"model": judge, "framing": "chat"})
    model = choose_model(named) if judge else None
    output.parent.mkdir(parents=True, exist_ok=True)

    with (
        output.open("w", encoding="utf-8", errors="replace") as file,  # Before anybody is paid.
        progress_bar("asking", len(asked) * (2 if judge else 1), quiet=as_json) as advance,
    ):
        done = count(1)
        rows = asyncio.run(
            evaluation.evaluate(
                graph, asked, chosen, concurrency=concurrency, model=model,
                prompts=choose_prompts(place), progress=lambda: advance(next(done)),
            )
        )  # fmt: skip
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    summary = evaluation.summarise(rows)
    if as_json:
        print_json({"method": method, **summary, "output": str(output)})
    else:
        print_table(_numbers(summary))
        for row in rows:
            if row["verdict"] in {"wrong", "abstained", "failed"}:
                why = row["lost"] or row["error"]
                told = f"{row['verdict']}{f', {why}' if why else ''}"
                say(f"[yellow]{safe(told)}:[/] {safe(row['question'])} [dim]({safe(row['id'])})[/]")
        if summary["verdicts"].get("unjudged") == len(rows):
            say("[yellow]no question says what is right:[/] give 'answers', 'files', 'answerable'")
        say(f"rows: {safe(output)}")
    if summary["verdicts"].get("failed"):
        raise typer.Exit(SOME_FAILED)


def _numbers(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a summary, for people."""
    lines = []
    for name, value in (summary | summary.pop("judge", {})).items():
        if isinstance(value, dict):
            shown = ", ".join(f"{number} {key}".replace("_", " ") for key, number in value.items())
        elif isinstance(value, list):
            shown = " to ".join(f"{one:.0%}" for one in value)
        elif name in _SHARES | {"supported", "relevant", "agrees"}:
            shown = "" if value is None else f"{value:.0%}"
        else:
            shown = f"{value or 0:,.4g}"
        lines.append((name.replace("_", " "), safe(shown)))
    return [line for line in lines if line[1]]
