"""`crag prompts`: list every prompt, or start a folder of your own."""

from pathlib import Path
from typing import Annotated

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import JsonOption
from crag.cli.terminal import environment, print_json, print_table, safe, say
from crag.plain import counted


@command(
    app,
    "crag prompts",
    "crag prompts --copy prompts-of-mine",
)
def prompts(
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Start a folder with a copy of every prompt; CRAG_PROMPTS names it.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List every prompt with where it is used and its placeholders, or copy them."""
    from crag.factory.parts import choose_prompts
    from crag.prompts import USES, copy_to

    if copy is not None:
        copied = copy_to(copy)
        if as_json:
            print_json([str(path) for path in copied])
            return
        say(f"{counted(len(copied), 'prompt')} copied to {safe(copy)}")
        say(f"use them: export CRAG_PROMPTS={safe(copy)}")
        return
    chosen = choose_prompts(environment())
    rows = [
        {
            "name": name,
            "used_by": use.where,
            "placeholders": [*use.needed, *use.optional],
            "optional": list(use.optional),
            "file": str(chosen.prompt(name).path or "packaged"),
        }
        for name, use in USES.items()
    ]
    if as_json:
        print_json(rows)
        return
    cells = (
        (str(row["name"]), safe(row["used_by"]), " ".join(f"${one}" for one in row["placeholders"]),
         safe(row["file"]))
        for row in rows
    )  # fmt: skip
    print_table(cells, "prompt", "used by", "placeholders", "file")
