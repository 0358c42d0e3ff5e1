"""The commands and their options; each implementation is imported when it runs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.commands import Group, command, name_values
from crag.graph_registry import OFFERED

app = typer.Typer(
    name="crag",
    help="Ask your documents; get a corrected answer with citations.",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"crag {version('corrective-rag')}")
        raise typer.Exit


@app.callback()
def choose(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file that names the parts. Default: CRAG_CONFIG, crag.toml.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Ask your documents; get a corrected answer with citations."""
    del version  # Its callback has ended the command.
    if config is not None:  # Where every command, and the server it starts, finds it.
        os.environ["CRAG_CONFIG"] = str(config)


IndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="PLACE",
        help="Folder of the index, or URL of a Chroma server, PostgreSQL, Qdrant or FAISS. "
        "Default: CRAG_INDEX, .crag/index.",
        show_default=False,
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Work on this Ray cluster: HOST:PORT, auto, or local for the cores of this machine.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


METHODS = {name.replace("_", "-"): entry.description for name, entry in OFFERED.items()}
"""The graphs by the names of `--method`."""


def _known_method(method: str) -> str:
    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}")
    return method


MethodOption = Annotated[
    str,
    typer.Option(
        callback=_known_method,
        autocompletion=lambda: list(METHODS),
        metavar="GRAPH",
        help="\n\n".join(f"{method}: {described}" for method, described in METHODS.items()),
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting, such as upper=0.5; may be repeated."
    ),
]


@command(
    app,
    "crag index docs notes.pdf",
    "crag index docs --watch",
    "crag index old.md --remove",
    "crag index docs --index postgresql://localhost/docs",
    "crag index docs --ray local",
    "crag index pages --loader .mhtml=MHTMLLoader",
)
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
    ray: RayOption = None,
    loader: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[.SUFFIX=]LOADER",
            help="Read files, or those of a suffix, with a loader of langchain-community, or with "
            "module:Class; may be repeated.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every file that was not indexed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index documents; run it again to update changed, added and removed ones."""
    from crag.cli.index import follow, run

    if watch and remove:
        raise typer.BadParameter("--watch and --remove exclude each other")
    if ray is not None and (watch or remove):
        raise typer.BadParameter("--ray is for indexing once: leave out --watch and --remove")
    if watch:
        follow(paths, location, loader or [], as_json=as_json, verbose=verbose)
    else:
        run(paths, location, loader or [], remove=remove, as_json=as_json, verbose=verbose, ray=ray)


@command(
    app,
    'crag ask "How long is parental leave?"',
    'crag ask "Who approves travel?" --in handbook --verbose',
    'crag ask "Why?" --set upper=0.5 --set strips_kept=3 --json',
)
def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="Your question.")],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    folder: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="PATH",
            help="Search only this folder or file, or any folder of that name.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Search only this: prose, list, table or code."),
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
    everything: Annotated[
        bool, typer.Option("--all", help="Show all that could be quoted, not the best alone.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; see the decision, the strips, the answer and its sources.

    Exits with 0 for an answer, 3 for the closest passages where none is sure, 4 if nothing was
    found, and always with 0 if --json is given.
    """
    from crag.cli.ask import run
    from crag.cli.terminal import filters

    chosen = [*(settings or []), *filters(folder, kind, since, until)]
    code = run(
        question, location, method, chosen,
        verbose=verbose, as_json=as_json, everything=everything,
    )  # fmt: skip
    raise typer.Exit(code)


@command(
    app,
    "crag evaluate questions.jsonl",
    "crag evaluate questions.jsonl --method rag --output plain",
    "crag evaluate questions.jsonl --judge gpt-4o",
)
def evaluate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines: question, with answers, or files that hold the answer, or neither."
        ),
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    output: Annotated[Path, typer.Option(help="Folder of the report and of the rows.")] = Path(
        "evaluation"
    ),
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only the first ones.", show_default=False)
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions at the same time.")] = 4,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Chat model that judges the answers: supported by what was found, about the "
            "question, as a right answer.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask your own questions, count what is right, and write a page of failures to read."""
    from crag.cli.evaluate import run

    run(
        questions, location, method, settings or [], output,
        limit=limit, concurrency=concurrency, judge=judge, as_json=as_json,
    )  # fmt: skip


@command(
    app,
    "crag batch questions.jsonl --output answers.jsonl",
    "crag batch questions.jsonl --output answers.jsonl --prices 0.15,0.60 --max-cost 5",
    "crag batch questions.jsonl --output answers.jsonl --ray 10.0.0.1:6379",
)
def batch(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[Path, typer.Argument(help="JSON Lines: question, perhaps with an id.")],
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write; what is in it is not asked again.")
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Questions at the same time; of a cluster, its cores.")
    ] = 4,
    ray: RayOption = None,
    again: Annotated[bool, typer.Option("--again", help="Ask failed questions again.")] = False,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Most calls of the chat model.", show_default=False)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Needs --prices.", show_default=False)
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT", help="For a million tokens.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer many questions into a file; run the same command again to go on where it ended."""
    from crag.asking.budget import Budget, prices_from_text
    from crag.cli.batch import run

    run(
        questions, location, method, settings or [], output,
        Budget(calls=max_calls, cost=max_cost, prices=prices_from_text(prices)),
        concurrency=concurrency, ray=ray, again=again, as_json=as_json,
    )  # fmt: skip


@command(
    app,
    "crag doctor",
    "crag doctor --quick --json",
)
def doctor(
    location: IndexOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only name the parts: load nothing, ask no server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Use each part once; show which are in use, what is missing, and how to fix it."""
    from crag.cli.doctor import run

    raise typer.Exit(run(location, quick=quick, as_json=as_json))


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
    from crag.cli.prompts import run

    run(copy, as_json=as_json)


@command(
    app,
    "crag serve --open",
    "crag serve --port 3000 --studio",
    "crag serve --host 0.0.0.0",
    extra="studio",
)
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


@command(
    app,
    "crag serve-evaluator",
    "CRAG_EVALUATOR=my-evaluator crag serve-evaluator --port 2026",
    name="serve-evaluator",
    extra="evaluator",
)
def serve_evaluator(
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 2025,
) -> None:
    """Serve the evaluator to other processes, which name it in CRAG_EVALUATOR by its URL."""
    from crag.cli.serve_evaluator import run

    run(host, port)


name_values(choose)
