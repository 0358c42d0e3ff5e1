"""`crag train questions`: what people would ask of documentation, and what stands against it."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, progress_bar, say
from crag.papers.cli.command import command
from crag.papers.cli.groups import train
from crag.papers.cli.options import RowsOption, SeedOption
from crag.plain import counted


@command(
    train,
    "crag train questions packages.json --output questions.jsonl --url http://127.0.0.1:8080/v1",
    "crag train questions packages.json --wikipedia wikipedia.jsonl --output questions.jsonl",
    extra="train",
)
def questions(  # noqa: PLR0913, PLR0917 - one parameter for each option
    packages: Annotated[Path, typer.Argument(help="A JSON list of packages to read.")],
    output: RowsOption,
    fetched: Annotated[
        Path | None,
        typer.Option(help="Folder for the documentation of packages.", show_default=False),
    ] = None,
    each: Annotated[int, typer.Option(min=1, help="Passages of one package to ask of.")] = 14,
    wikipedia: Annotated[
        Path | None,
        typer.Option(help="Articles with title and text (JSONL), too.", show_default=False),
    ] = None,
    articles: Annotated[int, typer.Option(min=1, help="Articles to ask of.")] = 6000,
    model: Annotated[str, typer.Option(help="Name of the model at the server.")] = "local",
    url: Annotated[
        str, typer.Option(help="Server of OpenAI's protocol that gives log-probabilities.")
    ] = "http://127.0.0.1:8080/v1",
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 8,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Let a chat model ask what passages answer, and judge it; run it again to resume."""
    from crag.extras import require
    from crag.generation import load_chat_model
    from crag.papers.loading.records import (
        Ledger,
        ledger_of,
        require_replaceable,
        write_records,
    )
    from crag.papers.reader.asked_questions import AskedRow, Asker, asked_of
    from crag.papers.reader.asked_units import introductions, sections_of
    from crag.papers.reader.documentation_rows import fetched as fetched_packages
    from crag.papers.reader.documentation_rows import listed
    from crag.papers.reader.rivals import with_rivals

    require("train", "crag train questions", "bm25s")
    require_replaceable(output, AskedRow)
    distributions = listed(packages)
    asker = Asker(load_chat_model(model, base_url=url, timeout=600, temperature=0), model, seed)
    folders = fetched_packages(distributions, fetched or output.with_suffix(""))
    sections = introductions(wikipedia, articles, seed) if wikipedia is not None else []
    with progress_bar("Reading documentation", len(folders), quiet=as_json) as advance:
        for done, folder in enumerate(folders, 1):
            sections += sections_of(folder, each)
            advance(done)
    with Ledger(ledger_of(output), {"model": model, "seed": seed}) as ledger:
        with progress_bar("Asking", quiet=as_json) as advance:
            asked = asked_of(sections, asker, ledger, concurrency=concurrency, progress=advance)
        rows = with_rivals(asked, sections, seed)
        write_records(output, rows)
        ledger.remove()
    kinds = Counter(question.kind for row in rows for question in row.questions)
    if as_json:
        print_json({"output": str(output), "rows": len(rows), "kinds": dict(kinds)})
        return
    told = ", ".join(f"{name} {count:,}" for name, count in kinds.items())
    say(f"{counted(len(rows), 'passage')} written to {output}: {told}")
