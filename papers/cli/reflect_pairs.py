"""`crag reflect-data pairs`: instructions and outputs, of which a generator's records are made."""

from typing import Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, safe, say
from crag.errors import SettingsError, TrainingError
from crag.papers.cli.command import command
from crag.papers.cli.groups import reflect_data
from crag.papers.cli.options import LeftOutOption, PassagesArgument, RowsOption, SeedOption
from crag.plain import counted


@command(
    reflect_data,
    "crag reflect-data pairs squad.jsonl --output pairs.jsonl",
    name="pairs",
)
def pairs_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: PassagesArgument,
    output: RowsOption,
    development: LeftOutOption = None,
    count: Annotated[int, typer.Option(min=1, help="Most pairs.")] = 5000,
    declined: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of answerable questions that are declined."),
    ] = 0.0,
    unsupported: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of outputs that state what no passage holds."),
    ] = 0.0,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="question, statement, choice, long; repeatable. Default: question.",
            show_default=False,
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Most sentences of an output.")] = 1,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make pairs of instruction and output from questions whose truth is known."""
    from crag.papers.loading.records import require_replaceable, write_records
    from crag.papers.self_rag.critique_rules import unleaked
    from crag.papers.self_rag.generator_data import Pair
    from crag.papers.self_rag.instruction_pairs import (
        KINDS,
        InstructionKind,
        instruction_pairs,
    )

    for kind in kinds or ():
        if kind not in KINDS:
            raise SettingsError("--kind", kind, f"one of {', '.join(KINDS)}")
    chosen: tuple[InstructionKind, ...] = KINDS[:1]
    if kinds:
        chosen = tuple(kind for kind in KINDS if kind in kinds)
    require_replaceable(output, Pair)
    truths, leaks = unleaked(data, development or (), seed)
    pairs = instruction_pairs(
        truths, count, declined=declined, unsupported=unsupported, kinds=chosen,
        sentences=sentences, seed=seed,
    )  # fmt: skip
    if not pairs:
        raise TrainingError("no question is left: all of them are in the development data too")
    write_records(output, pairs)
    if as_json:
        made = {kind: sum(one.dataset_name == kind for one in pairs) for kind in (*chosen, "task")}
        told = {"output": str(output), "pairs": len(pairs), "kinds": made}
        print_json(told | {"in_development": leaks})
        return
    left_out = f"left out: {leaks:,} in the development data"
    say(f"{counted(len(pairs), 'pair')} written to {safe(output)}; {left_out}")
