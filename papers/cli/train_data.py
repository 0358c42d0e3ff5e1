"""`crag train reader-data`: what readers and encoders learn from."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, say
from crag.papers.cli.command import command
from crag.papers.cli.options import LeftOutOption, RowsOption, SeedOption
from crag.papers.cli.train import group
from crag.plain import counted


@command(
    group,
    "crag train reader-data squad.jsonl nq.jsonl --dev squad_dev.jsonl --output rows.jsonl",
    "crag train reader-data packages.json --fetched packages --output documentation.jsonl",
    "crag train reader-data squad.jsonl --with documentation.jsonl --output rows.jsonl",
    name="reader-data",
)
def reader_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Questions with their passages (JSONL), or a list of packages to read (JSON)."
        ),
    ],
    output: RowsOption,
    development: LeftOutOption = None,
    each: Annotated[int, typer.Option(min=1, help="Most rows of each kind.")] = 9000,
    fetched: Annotated[
        Path | None,
        typer.Option(help="Folder for the documentation of packages.", show_default=False),
    ] = None,
    others: Annotated[
        Path | None, typer.Option("--with", help="Rows to mix with these.", show_default=False)
    ] = None,
    most: Annotated[
        int | None, typer.Option(min=1, help="With --with: most of these rows.", show_default=False)
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make the rows of a reader from question sets, or from the documentation of packages."""
    from crag.papers.loading.records import read_records, require_replaceable, write_records
    from crag.papers.reader import documentation
    from crag.papers.reader.question_sets import mixed, reading_rows
    from crag.papers.reader.rows import ReadingRow
    from crag.papers.self_rag.critique_rules import unleaked

    require_replaceable(output, ReadingRow)
    if data[0].suffix == ".json":
        folder = fetched or output.with_suffix("")
        folders = [one for path in data for one in documentation.fetched(path, folder)]
        rows = documentation.documentation_rows(folders)
    else:
        rows = reading_rows(unleaked(data, development or (), seed)[0], each, seed)
    if others is not None:
        rows = mixed(rows, read_records(others, ReadingRow), most, seed)
    write_records(output, rows)
    counts = dict(Counter(row.source for row in rows))
    if as_json:
        print_json({"output": str(output), "rows": len(rows), "sources": counts})
        return
    told = ", ".join(f"{source} {count:,}" for source, count in counts.items())
    say(f"{counted(len(rows), 'row')} written to {output}: {told}")
