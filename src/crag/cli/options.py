"""The options that several commands have; each is declared once, here."""

from typing import Annotated

import typer

from crag.graph_registry import GRAPHS
from crag.index.backends import STORES

IndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="PLACE",
        help=f"Where the index is: {', '.join(STORES)}. Default: CRAG_INDEX, .crag/index.",
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        metavar="GRAPH",
        help="\n\n".join(f"{name}: {entry.description}" for name, entry in GRAPHS.items()),
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting, such as upper=0.5; may be repeated."
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option("--in", metavar="PATH", help="Search only this folder or file of the index."),
]
TraceOption = Annotated[
    bool, typer.Option("--trace", help="Show what led to it: scores, strips, pages.")
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Work on this Ray cluster: HOST:PORT, auto, or local for the cores of this machine.",
    ),
]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, help="Questions at the same time, on this machine.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
