"""`crag train reader-data` and `crag train reader`: the rows of a reader, and the reader."""

from pathlib import Path
from typing import Annotated, Any

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned, print_json, say
from crag.papers.cli.command import command, refuse_overwriting
from crag.papers.cli.groups import train
from crag.papers.cli.options import LicenceOption, RecipeSettings, RowsOption, SeedOption
from crag.papers.cli.train_evaluator import LIMITS
from crag.plain import counted

READ_LENGTH = 320
"""Tokens of one input when reading: a chunk of our splitter, its headings and the question."""
UNSURE = "docs_"
"""Sources whose wrong sections may hold the answer as well; no grade is fitted to them."""


@command(
    train,
    "crag train reader-data data --output rows.jsonl",
    "crag train reader-data packages.json --fetched packages --output documentation.jsonl",
    "crag train reader-data data --with documentation.jsonl --most 24000 --output rows.jsonl",
    name="reader-data",
)
def reader_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    source: Annotated[
        Path,
        typer.Argument(help="Folder of question sets, or a JSON list of packages to read."),
    ],
    output: RowsOption,
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
    from collections import Counter

    from crag.papers.loading.records import read_records, require_replaceable, write_records
    from crag.papers.reader.documentation_rows import documentation_rows
    from crag.papers.reader.reading_rows import ReadingRow
    from crag.papers.reader.reading_sources import mixed, reading_rows

    require_replaceable(output, ReadingRow)
    if source.is_dir():
        rows = reading_rows(source, seed)
        if others is not None:
            rows = mixed(rows, read_records(others, ReadingRow), most, seed)
    else:
        rows = documentation_rows(source, fetched or output.with_suffix(""))
    write_records(output, rows)
    sources = dict(Counter(row.source for row in rows))
    told = ", ".join(f"{name} {count:,}" for name, count in sources.items())
    _show(
        {"output": str(output), "rows": len(rows), "sources": sources},
        f"{counted(len(rows), 'row')} written to {output}: {told}",
        as_json=as_json,
    )


@command(
    train,
    "crag train reader rows.jsonl --output my-reader",
    "crag train reader rows.jsonl --output my-reader --set start=reader --set start_share=0.5",
    extra="train",
)
def reader(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[Path, typer.Argument(help="Rows of crag train reader-data (JSONL).")],
    output: Annotated[
        Path, typer.Option(help="Folder to write the reader to.", show_default=False)
    ],
    development: Annotated[
        list[Path] | None,
        typer.Option("--dev", help="Labelled pairs or QA sets to measure it on; may be repeated."),
    ] = None,
    graded: Annotated[
        int, typer.Option(min=2, help="Rows kept out of training, to fit the grade to.")
    ] = 1400,
    settings: RecipeSettings = None,
    licence: LicenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a reader, the default evaluator, on rows; run it again to resume."""
    from crag.evaluators import load_evaluator
    from crag.models.model_card import DataFile, ModelCard
    from crag.models.reading_model import GRADE, ReaderModel
    from crag.papers.evaluator.artefacts import write_card
    from crag.papers.evaluator.bases import SHIPPED
    from crag.papers.evaluator.evidence import measured_quality
    from crag.papers.evaluator.pairs import read_pairs
    from crag.papers.evaluator.recipe import valid_recipe
    from crag.papers.evaluator.trainer import finish
    from crag.papers.loading.records import file_digest, read_records
    from crag.papers.reader.grading import fit_grade
    from crag.papers.reader.onnx_export import hashes_of
    from crag.papers.reader.reader import (
        PLAIN_GRADE,
        ReaderRecipe,
        rarity_in,
        save_grade,
        save_reader,
        train_reader,
        unseen,
    )
    from crag.papers.reader.reading_rows import ReadingRow

    recipe = valid_recipe(ReaderRecipe, assigned(settings))
    if recipe.start not in SHIPPED:
        refuse_overwriting([output], [Path(recipe.start)])
    rows = read_records(data, ReadingRow)
    if recipe.steps is None:
        steps = max(1, (len(rows) - graded) // recipe.batch_size)
        recipe = recipe.model_copy(update={"steps": steps})
    held_out = [r for r in unseen(rows, recipe, graded) if not r.source.startswith(UNSURE)]
    trained = train_reader(recipe, rows, output, quiet=as_json)
    rarity = rarity_in(rows, trained.base.tokenizer)
    save_reader(trained.base, PLAIN_GRADE, rarity, output)
    grade = fit_grade(ReaderModel(output, READ_LENGTH), held_out)
    save_grade(grade, rarity, output)
    described = [
        DataFile(
            name=data.name, sha256=file_digest(data), pairs=len(rows),
            positives=sum(row.answer == 1 for row in rows), licence=licence,
        )
    ]  # fmt: skip
    card = ModelCard(
        kind="reader", base=recipe.start, max_length=READ_LENGTH, data=described,
        recipe=recipe.model_dump(mode="json"), limits=LIMITS,
        files=hashes_of(output, GRADE),
    )  # fmt: skip
    write_card(output, card)
    evaluator = load_evaluator(str(output.resolve()))
    metrics = {
        path.stem: measured_quality(evaluator, read_pairs(path)) for path in development or []
    }
    card = card.model_copy(update={"metrics": metrics})
    write_card(output, card)
    finish(output)
    told = f"Written to {output}. Next, fit its thresholds:\n"
    told += f"  crag calibrate DATA --evaluator {output} --write"
    _show({"output": str(output), "card": card.model_dump(mode="json")}, told, as_json=as_json)


def _show(report: dict[str, Any], told: str, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        say(told)
