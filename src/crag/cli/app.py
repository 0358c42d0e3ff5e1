"""The commands and their options; what each does is imported when it runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="crag",
    help="Ask your documents; get a corrected answer with citations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

IndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="Folder of the index, or URL of a Chroma server. Default: CRAG_INDEX, .crag/index.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


class Method(StrEnum):
    """The graphs that `crag ask` runs."""

    crag = "crag"
    rag = "rag"


@app.command()
def index(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Files and folders: txt, md, html, pdf, docx, csv, jsonl."),
    ],
    location: IndexOption = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take these paths out of the index.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index documents; again to follow changed, added and removed ones."""
    from crag.cli.index import run

    run(paths, location, remove=remove, as_json=as_json)


@app.command()
def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    location: IndexOption = None,
    method: Annotated[
        Method, typer.Option(help="crag corrects what was retrieved; rag does not.")
    ] = Method.crag,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting, such as upper=0.5; may be repeated."
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every strip that was dropped.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; see the decision, the strips, the answer and its sources."""
    from crag.cli.ask import run

    run(question, location, method.value, settings or [], verbose=verbose, as_json=as_json)


@app.command()
def doctor(location: IndexOption = None, as_json: JsonOption = False) -> None:
    """Say which parts are in use, what is missing, and what to do."""
    from crag.cli.doctor import run

    raise typer.Exit(run(location, as_json=as_json))
