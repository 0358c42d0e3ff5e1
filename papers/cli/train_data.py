"""`crag train reader-data` and `crag train questions`: what readers and encoders learn from."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, progress_bar, say
from crag.papers.cli.command import command
from crag.papers.cli.options import (
    ConcurrencyOption,
    FetchedOption,
    LeftOutOption,
    RowsOption,
    SeedOption,
)
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
    fetched: FetchedOption = None,
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
    _show(output, len(rows), "sources", (row.source for row in rows), as_json=as_json)


@command(
    group,
    "crag train questions packages.json --output questions.jsonl --url http://127.0.0.1:8080/v1",
    extra="train",
)
def questions(  # noqa: PLR0913, PLR0917 - one parameter for each option
    packages: Annotated[Path, typer.Argument(help="A JSON list of packages to read.")],
    output: RowsOption,
    fetched: FetchedOption = None,
    each: Annotated[int, typer.Option(min=1, help="Passages of one package to ask of.")] = 14,
    model: Annotated[str, typer.Option(help="Name of the model at the server.")] = "local",
    url: Annotated[
        str, typer.Option(help="Server of OpenAI's protocol that gives log-probabilities.")
    ] = "http://127.0.0.1:8080/v1",
    concurrency: ConcurrencyOption = 8,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Let a chat model ask what passages answer, and judge it; run it again to resume."""
    from crag.extras import require
    from crag.generation import load_chat_model
    from crag.papers.loading.records import Ledger, ledger_of, require_replaceable, write_records
    from crag.papers.reader import asked
    from crag.papers.reader.documentation import Section
    from crag.papers.reader.documentation import fetched as fetched_packages

    require("train", "crag train questions", "bm25s")
    require_replaceable(output, asked.AskedRow)
    folders = fetched_packages(packages, fetched or output.with_suffix(""))
    chat = load_chat_model(model, base_url=url, timeout=600, temperature=0)
    sections: list[Section] = []
    units: list[asked.Unit] = []
    with progress_bar("Reading documentation", len(folders), quiet=as_json) as advance:
        for done, folder in enumerate(folders, 1):
            more, of_package = asked.units_of_package(folder, each)
            sections += more
            units += of_package
            advance(done)
    with Ledger(ledger_of(output), {"model": model, "seed": seed}) as ledger:
        with progress_bar("Asking", quiet=as_json) as advance:
            found = asked.asked_of(
                units, asked.Asker(chat, model, seed), ledger, concurrency=concurrency,
                progress=advance,
            )  # fmt: skip
        rows = asked.with_rivals(found, sections)
        write_records(output, rows)
        ledger.remove()
    kinds = (question.kind for row in rows for question in row.questions)
    _show(output, len(rows), "kinds", kinds, as_json=as_json)


def _show(output: Path, rows: int, name: str, kinds: Iterable[str], *, as_json: bool) -> None:
    counts = dict(Counter(kinds))
    if as_json:
        print_json({"output": str(output), "rows": rows, name: counts})
        return
    told = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
    say(f"{counted(rows, 'row')} written to {output}: {told}")
