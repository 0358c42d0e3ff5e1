"""`crag prompts`: list every prompt, or start a folder of your own."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from crag.cli.terminal import plain_table, print_json
from crag.factory import choose_prompts
from crag.prompts import USES, Prompts, copy_to
from crag.runtime.environment import Environment


def run(folder: Path | None, *, as_json: bool) -> None:
    """Print the prompts in use with their placeholders, or copy the packaged ones to `folder`.

    Raises:
        PromptError: a prompt of CRAG_PROMPTS cannot be used, or `folder` has one already.
    """
    if folder is not None:
        copied = copy_to(folder)
        if as_json:
            print_json([str(path) for path in copied])
            return
        console = Console(highlight=False)
        console.print(f"{len(copied)} prompts copied to {escape(str(folder))}", soft_wrap=True)
        console.print(f"use them: export CRAG_PROMPTS={escape(str(folder))}", soft_wrap=True)
        return
    rows = listed(choose_prompts(Environment()))
    if as_json:
        print_json(rows)
        return
    table: Any = plain_table(show_header=True)
    for head in ("prompt", "used by", "placeholders", "file"):
        table.add_column(head)
    for row in rows:
        placeholders = " ".join(f"${name}" for name in row["placeholders"])
        table.add_row(row["name"], escape(row["used_by"]), placeholders, escape(row["file"]))
    Console().print(table)


def listed(prompts: Prompts) -> list[dict[str, Any]]:
    """Return a row for each prompt; `file` is "packaged", or the file in its place."""
    return [
        {
            "name": name,
            "used_by": use.where,
            "placeholders": [*use.needed, *use.optional],
            "optional": list(use.optional),
            "file": str(prompts.prompt(name).path or "packaged"),
        }
        for name, use in USES.items()
    ]
