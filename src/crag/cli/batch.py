"""`crag batch`: answer many questions into a file, resumably."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from crag.cli.app import app, examples
from crag.cli.options import (
    ConcurrencyOption,
    IndexOption,
    JsonOption,
    MethodOption,
    RayOption,
    SettingsOption,
)
from crag.cli.terminal import (
    SOME_FAILED,
    assigned,
    environment,
    print_json,
    progress_bar,
    refuse_overwriting,
    safe,
    say,
)


@app.command(
    epilog=examples(
        "crag batch questions.jsonl --output answers.jsonl",
        "crag batch questions.jsonl --output answers.jsonl --ray 10.0.0.1:6379",
    )
)
def batch(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[Path, typer.Argument(help="JSON Lines: question, perhaps with an id.")],
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write; what is in it is not asked again.")
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    concurrency: ConcurrencyOption = 4,
    ray: RayOption = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Ask again what failed, or was answered without a part that failed."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer many questions into a file; run the same command again to go on where it ended.

    The exit code is 1 where questions have failed.
    """
    from crag.asking.many import AnswerFile, Batch, answer_all, part_failed, read_questions

    refuse_overwriting(output, questions)
    asked = read_questions(questions)
    told = Batch(environment(location).shared(), method, tuple(assigned(settings).items()))
    told.chosen()  # Wrong settings are told before anything starts.
    with AnswerFile(output, told.run) as answers, progress_bar("asking", quiet=as_json) as advance:
        new = answer_all(
            asked, told, answers, concurrency=concurrency, ray=ray, again=again, progress=advance
        )
        rows = [answers.rows[one.id] for one in asked]
    usage: Counter[str] = Counter()
    for row in new:
        usage.update(row["usage"] or {})
    ended: dict[str, Any] = {
        "questions": len(rows),
        "answered_before": len(rows) - len(new),
        "outcomes": dict(Counter(row["outcome"] or "failed" for row in rows)),
        "part_failed": sum(map(part_failed, rows)),
        "usage": usage,
        "output": str(output),
    }
    if as_json:
        print_json(ended)
    else:
        counts = [f"{number:,} {name}" for name, number in ended["outcomes"].items()]
        counts += [f"{ended['part_failed']:,} without a part that failed"]
        read, written = (usage[f"{way}_tokens"] for way in ("input", "output"))
        say(f"{', '.join(counts)}; {ended['answered_before']:,} were there")
        say(f"{usage['llm_calls']:,} model calls, {read:,} tokens read, {written:,} written")
        say(f"answers: {safe(output)}")
    if any(row["error"] for row in rows):
        raise typer.Exit(SOME_FAILED)
