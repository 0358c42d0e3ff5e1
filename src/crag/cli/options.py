"""The options that several commands have, each declared once: a command names `options.Index`."""

from typing import Annotated

import typer

from crag.graph_registry import GRAPHS
from crag.index.backends import STORES

Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="PLACE",
        help=f"Where the index is: {', '.join(STORES)}. Default: CRAG_INDEX, .crag/index.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="GRAPH",
        help="\n\n".join(f"{name}: {entry.description}" for name, entry in GRAPHS.items()),
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting, such as upper=0.5; may be repeated."
    ),
]
Folder = Annotated[
    str | None,
    typer.Option("--in", metavar="PATH", help="Search only this folder or file of the index."),
]
Trace = Annotated[bool, typer.Option("--trace", help="Show what led to it: scores, strips, pages.")]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Work on this Ray cluster: HOST:PORT, auto, or local for the cores of this machine.",
    ),
]
Concurrency = Annotated[
    int, typer.Option(min=1, help="Questions at the same time, on this machine.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
