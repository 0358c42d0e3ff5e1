"""`crag export`: a trained generator as a GGUF file for llama.cpp's server."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from crag.cli import app
from crag.cli.commands import command, refuse_overwriting
from crag.cli.options import JsonOption
from crag.cli.terminal import print_json, safe, say


@command(
    app,
    "crag export models/self-rag --output self-rag.gguf",
    "crag export models/self-rag --output self-rag.gguf --weights q8_0",
)
def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a model with reflection tokens.")],
    output: Annotated[
        Path, typer.Option(help="GGUF file to write.", show_default=False, dir_okay=False)
    ],
    weights: Annotated[
        Literal["float32", "q8_0"],
        typer.Option(help="float32, or q8_0: a quarter of the size, and faster."),
    ] = "float32",
    as_json: JsonOption = False,
) -> None:
    """Write a trained generator as GGUF, which llama.cpp's server loads."""
    from crag.papers.training.self_rag.gguf_export import export_gguf

    if folder.is_dir():
        refuse_overwriting([output], [one for one in folder.iterdir() if one.suffix != ".gguf"])
    export_gguf(folder, output, weights)
    size = output.stat().st_size
    if as_json:
        print_json({"output": str(output), "bytes": size})
        return
    say(f"Written to {safe(output)} ({size / 1e6:,.0f} MB). Serve it:")
    say(f"  llama-server --model {safe(output)} --ctx-size 16384")
    say(
        "  CRAG_REFLECTION=server CRAG_REFLECTION_URL=http://127.0.0.1:8080/v1 "
        "crag ask QUESTION --method self-rag"
    )
