"""The commands and their options; each implementation is imported when it runs."""

from pathlib import Path
from typing import Annotated, Literal

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
        help="Folder of the index, or URL of a Chroma server or a PostgreSQL database. "
        "Default: CRAG_INDEX, .crag/index.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


GraphName = Literal["crag", "rag", "self-rag", "self-crag"]
LabelsOption = Annotated[
    Literal["auto", "title", "answer", "graded"],
    typer.Option(help="What makes a document of a QA set relevant."),
]


@app.command()
def index(  # noqa: PLR0913, PLR0917 - one parameter for each option
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files and folders: text, Markdown, reStructuredText, HTML, PDF, office files, "
            "EPUB, notebooks, mail, source code, CSV, JSONL."
        ),
    ],
    location: IndexOption = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove these paths from the index.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Index again after each change in these folders, until Ctrl-C."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every file that was not indexed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index documents; run it again to update changed, added and removed ones."""
    from crag.cli.index import follow, run

    if watch and remove:
        raise typer.BadParameter("--watch and --remove exclude each other")
    if watch:
        follow(paths, location, as_json=as_json, verbose=verbose)
    else:
        run(paths, location, remove=remove, as_json=as_json, verbose=verbose)


@app.command()
def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="Your question.")],
    location: IndexOption = None,
    method: Annotated[
        GraphName,
        typer.Option(
            help="crag corrects what was retrieved, rag does not; self-rag critiques what it reads "
            "and writes, self-crag does both."
        ),
    ] = "crag",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting, such as upper=0.5; may be repeated."
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--in", help="Search only this folder or file, or any folder of that name."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Search only this: prose, list, table or code.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="Search only files modified since.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DAY", help="Search only files modified until.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every strip that was dropped.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; see the decision, the strips, the answer and its sources."""
    from crag.cli.ask import run
    from crag.cli.terminal import filters

    chosen = [*(settings or []), *filters(folder, kind, since, until)]
    run(question, location, method, chosen, verbose=verbose, as_json=as_json)


@app.command()
def doctor(location: IndexOption = None, as_json: JsonOption = False) -> None:
    """Show which parts are in use, what is missing, and how to fix it."""
    from crag.cli.doctor import run

    raise typer.Exit(run(location, as_json=as_json))


@app.command()
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
    from crag.cli.prompts import run

    run(copy, as_json=as_json)


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - one parameter for each option
    location: IndexOption = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; other machines may then ask too, with the token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 2024,
    studio: Annotated[
        bool,
        typer.Option("--studio", help="Let LangGraph Studio's web site use the server."),
    ] = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            help="Ask clients for the token in the printed address; without it, for one user alone "
            "on this machine.",
        ),
    ] = True,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the server's output.")
    ] = False,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep threads and runs in this PostgreSQL database, for production; for a trial, "
            "name a folder to run PostgreSQL in.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes of the server; needs --postgres.")
    ] = 1,
    one_user: Annotated[
        bool,
        typer.Option(
            "--one-user",
            help="Let other machines use a production server although all have one token.",
        ),
    ] = False,
) -> None:
    """Serve the page, the graphs' API, and LangGraph Studio's server."""
    from crag.cli.serve import run

    if workers > 1 and postgres is None:
        raise typer.BadParameter("--workers needs --postgres: name the database they share")
    run(
        location, host, port, studio=studio, token=token, opens=opens, verbose=verbose,
        postgres=postgres, workers=workers, one_user=one_user,
    )  # fmt: skip


@app.command()
def calibrate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled pairs (jsonl, csv) or QA sets with documents (jsonl)."),
    ],
    evaluator: Annotated[
        str, typer.Option(help="Name of an evaluator, or the folder of one.")
    ] = "default",
    labels: LabelsOption = "auto",
    precision: Annotated[
        float | None,
        typer.Option(help="Share of the questions judged Correct that are right. Default: 0.92."),
    ] = None,
    discarded: Annotated[
        float | None,
        typer.Option(help="Most of the usable sets to discard, as a share. Default: 0.02."),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="WRONG,NEEDLESS,DISCARDED",
            help="Minimise these costs instead: of a wrong Correct, a needless Ambiguous, and a "
            "discarded usable set.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 0,
    compat: Annotated[
        Literal["official"] | None,
        typer.Option(help="Score a T5 as the official code does: one by one, padded to 512."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the thresholds into the evaluator's card.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for charts.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the thresholds of an evaluator to your labelled data."""
    from crag.cli.calibrate import aim_of, run

    aim = aim_of(precision, discarded, costs)
    run(
        data, evaluator, labels, aim,
        seed=seed, compat=compat, write=write, pictures=pictures, as_json=as_json,
    )  # fmt: skip
