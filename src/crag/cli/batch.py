"""`crag batch`: answer many questions into a file, resumably."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from crag.cli import options
from crag.cli.terminal import SOME_FAILED, assigned, environment, print_summary, progress_bar


def batch(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[Path, typer.Argument(help="JSON Lines: question, perhaps with an id.")],
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write; what is answered in it is not asked again.")
    ],
    location: options.Index = None,
    method: options.Method = "crag",
    settings: options.Settings = None,
    concurrency: options.Concurrency = 4,
    ray: options.Ray = None,
    as_json: options.Json = False,
) -> None:
    """Answer many questions into a file; run the same command again to go on where it ended.

    What failed, or was answered without a part that failed, is then asked again. The exit code is 1
    where questions have failed.
    """
    from crag.asking.many import answer_all, part_failed, read_questions

    chosen = (environment(location), method, assigned(settings))
    with progress_bar("asking", quiet=as_json) as advance:
        rows, before = answer_all(
            read_questions(questions), chosen, output, advance, concurrency=concurrency, ray=ray
        )
    usage: Counter[str] = Counter()
    for row in rows:
        usage.update(row["usage"] or {})
    summary = {
        "questions": len(rows),
        "answered_before": before,
        "outcomes": dict(Counter(row["outcome"] or "failed" for row in rows)),
        "part_failed": sum(map(part_failed, rows)),
        "usage": dict(usage),
        "output": str(output),
    }
    print_summary(summary, as_json=as_json)
    if any(row["error"] for row in rows):
        raise typer.Exit(SOME_FAILED)
