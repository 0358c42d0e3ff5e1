"""`crag index`: index documents, with a progress bar and a report."""

from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from crag.cli import options
from crag.cli.terminal import environment, from_here, print_json, progress_bar, safe, say
from crag.plain import counted


def index(  # noqa: PLR0913, PLR0917 - one parameter for each option
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files and folders: text, Markdown, reStructuredText, HTML, PDF, office files, "
            "notebooks, source code, CSV, JSONL."
        ),
    ],
    location: options.Index = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove these paths from the index.")
    ] = False,
    ray: options.Ray = None,
    loader: Annotated[
        list[str] | None,
        typer.Option(
            metavar=".SUFFIX=MODULE:CLASS",
            help="Read files of a suffix with a loader of LangChain; may be repeated.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Index documents; run it again to update changed, added and removed ones."""
    from crag.documents.loaders import loaders_with
    from crag.factory.embeddings import choose_encoder, choose_limits
    from crag.index import index_paths, open_index
    from crag.index.update import reader_within

    loaders = loaders_with(loader or ())
    chosen = environment(location)
    reader = reader_within(choose_limits(chosen))
    if ray is not None:
        from crag.cli.index_workers import read_on_ray

        reader = partial(read_on_ray, chosen, ray)
    target = open_index(chosen.index, choose_encoder(chosen))
    with progress_bar("indexing", quiet=as_json) as advance:
        report = index_paths(
            paths, target, remove=remove, loaders=loaders, reader=reader, progress=advance
        )
    if as_json:
        return print_json(asdict(report))
    # A folder is shown as it was given, a URL without its password.
    place = target.location if "://" in chosen.index else chosen.index
    say(
        f"{safe(place)}: {report.added} added, {report.changed} changed, "
        f"{report.unchanged} unchanged, {report.removed} removed "
        f"({counted(report.chunks, 'chunk')} in {report.seconds:.1f} s)"
    )
    for one in report.skipped:
        say(f"  [yellow]skipped[/] {safe(from_here(one.source))}: {safe(from_here(one.reason))}")
    kinds = Counter(Path(name).suffix.lower() or "no suffix" for name in report.unsupported)
    for suffix, number in kinds.most_common():
        say(f"  [dim]not read: {number} {safe(suffix)} (unknown format)[/]")
    return None
