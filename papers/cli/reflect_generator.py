"""`crag reflect-data generator`: records with passages and critiques, to train a generator on."""

from pathlib import Path
from typing import Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned, print_json, progress_bar, safe, say
from crag.errors import SettingsError, TrainingError
from crag.papers.cli.command import command
from crag.papers.cli.groups import reflect_data
from crag.papers.cli.options import RowsOption
from crag.plain import counted


@command(
    reflect_data,
    "crag reflect-data generator pairs.jsonl --critic models/critic --output records.jsonl",
    name="generator",
    extra="torch",
)
def generator_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path], typer.Argument(help="Pairs (JSONL): instruction, output, perhaps input.")
    ],
    output: RowsOption,
    critic: Annotated[
        Path | None,
        typer.Option("--critic", help="Folder of crag train critic.", show_default=False),
    ] = None,
    truth: Annotated[
        list[Path] | None,
        typer.Option(
            "--truth",
            help="Instead: what the pairs were made from; repeatable.",
            show_default=False,
        ),
    ] = None,
    location: Annotated[
        str | None,
        typer.Option("--index", help="Where passages are found. Default: CRAG_INDEX, .crag/index."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="passages, keep_without_retrieval, irrelevant, unsupported, form, wording, "
            "preamble, weights, seed.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Device of the critic. Default: CUDA if there is one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Insert passages and the critic's tokens into outputs (Alg. 2); run it again to resume."""
    from crag.papers.evaluator.recipe import valid_recipe
    from crag.papers.loading.records import (
        Ledger,
        digest_of,
        ledger_of,
        read_records,
        require_replaceable,
        write_records,
    )
    from crag.papers.self_rag import generator_data as records
    from crag.papers.self_rag.data_tools import CriticTools
    from crag.papers.self_rag.outcomes import one_by_one

    rules = valid_recipe(records.DataRules, assigned(settings))
    require_replaceable(output, records.ReflectiveRecord)
    pairs = [pair for path in data for pair in read_records(path, records.Pair)]
    tools = CriticTools(critic, tuple(truth or ()), tuple(data), location, device, rules)
    if (critic is None) == (not truth):
        allowed = "give a critic's folder, or --truth with the files the pairs were made from"
        raise SettingsError("--critic", critic, allowed)
    run = {
        "words": tools.words(), "rules": rules.model_dump(mode="json"), "pairs": digest_of(pairs),
        "passages": tools.passages(), "critic": tools.digest(),
    }  # fmt: skip
    outcomes = one_by_one(*tools.load(), rules)
    with Ledger(ledger_of(output), run) as ledger:
        with progress_bar("critiquing", quiet=as_json) as advance:
            made = records.generator_data(pairs, outcomes, ledger, rules.form, advance)
        if not made.records:
            told = ", ".join(f"{count} {reason}" for reason, count in made.rejected.items())
            message = f"no record could be made: {told}. Change the data, the index or the critic"
            raise TrainingError(message)
        write_records(output, made.records)
        ledger.remove()
    shares = records.label_shares(made.records)
    if as_json:
        counts = {"output": str(output), "records": len(made.records)}
        print_json({**counts, "tokens": dict(shares), "rejected": made.rejected})
        return
    for token, count in shares.items():
        say(f"{counted(count, 'record')} with {safe(token)}")
    for reason, count in made.rejected.items():
        say(f"rejected: {count:,} {safe(reason)}")
    say(f"{len(made.records):,} written to {safe(output)}.")
