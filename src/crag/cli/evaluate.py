"""`crag evaluate`: your own questions, judged, with a page of failures to read."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from crag.bench.evaluation import Row, Summary, evaluate, read_questions, summarise
from crag.bench.evaluation_page import numbers, page_of
from crag.cli.ask import BUILDERS
from crag.cli.terminal import assigned, environment, plain_table, print_json, progress_bar
from crag.errors import DataError
from crag.factory import choose_parts
from crag.settings import settings_from_text


def run(  # noqa: PLR0913 - the options of the command
    path: Path,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    output: Path,
    *,
    limit: int | None,
    concurrency: int,
    as_json: bool,
) -> None:
    """Ask every question, write rows and report into `output`, and print the summary."""
    questions = read_questions(path, limit)
    chosen = settings_from_text(assigned(assignments))
    place = environment(location)
    graph = BUILDERS[method](choose_parts(place, index_must_exist=True))
    with progress_bar("asking", quiet=as_json) as advance:
        rows = asyncio.run(
            evaluate(
                graph,
                questions,
                chosen,
                concurrency=concurrency,
                progress=lambda done: advance(done, len(questions), "asking"),
            )
        )
    summary = summarise(rows)
    about = {"questions": str(path), "method": method, "settings": ", ".join(assignments)}
    written = _write(output, rows, summary, {name: one for name, one in about.items() if one})
    if as_json:
        print_json({"method": method, **summary, "files": [str(file) for file in written]})
        return
    table = plain_table(show_header=False)
    for name, value in numbers(summary).items():
        table.add_row(name, escape(value))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"report: {escape(str(written[0]))}", soft_wrap=True)


def _write(
    folder: Path, rows: Sequence[Row], summary: Summary, about: dict[str, str]
) -> tuple[Path, Path]:
    page, lines = folder / "report.html", folder / "rows.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(page_of(rows, summary, about), "utf-8")
        with lines.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except OSError as error:
        raise DataError(folder, f"the report cannot be written: {error.strerror}") from error
    return page, lines
