"""`crag index`: index documents, with a progress bar and a report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from crag.cli.index_workers import ray_reader
from crag.cli.terminal import (
    ending_on_signals,
    environment,
    import_from_here,
    print_error,
    print_json,
    progress_bar,
)
from crag.factory import choose_encoder, choose_limits
from crag.retrieval import (
    DocumentIndex,
    IndexReport,
    index_paths,
    loaders_with,
    reader_within,
    watch_paths,
)
from crag.retrieval.documents import Loader
from crag.retrieval.loaders import reason_unread

_SKIPPED_SHOWN = 20
_KINDS_SHOWN = 8


def run(  # noqa: PLR0913 - one parameter for each option
    paths: Sequence[Path],
    location: str | None,
    loaders: Sequence[str],
    *,
    remove: bool,
    as_json: bool,
    verbose: bool,
    ray: str | None = None,
) -> None:
    """Index `paths`, or remove them, and report what was done and skipped.

    With `ray`, the address of a cluster, its workers load, split and embed.
    """
    reading = _named(loaders)
    chosen = environment(location)
    reader = ray_reader(chosen, ray) if ray else reader_within(choose_limits(chosen))
    target = DocumentIndex(chosen.index, choose_encoder(chosen))
    with progress_bar("indexing", quiet=as_json) as advance:

        def shown(done: int, total: int | None, source: str) -> None:
            advance(done, total, Path(source).name)

        report = index_paths(
            paths, target, progress=shown, remove=remove, loaders=reading, reader=reader
        )
    if as_json:
        print_json(asdict(report))
    else:
        _show(report, _place(chosen.index, target), Console(), verbose=verbose)


def follow(
    paths: Sequence[Path],
    location: str | None,
    loaders: Sequence[str],
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    """Index folders, and again after each change, until Ctrl-C; report each run.

    A failure that lasts is reported once, and so is each file that cannot be read.
    """
    reading = _named(loaders)
    chosen = environment(location)
    target = DocumentIndex(chosen.index, choose_encoder(chosen))
    console, failure, known = Console(), "", IndexReport()
    Console(stderr=True).print("[dim]Following changes; Ctrl-C ends.[/]")
    with suppress(KeyboardInterrupt), ending_on_signals():
        reader = reader_within(choose_limits(chosen))
        for report, error in watch_paths(paths, target, loaders=reading, reader=reader):
            if error is not None and str(error) != failure:
                print_error(error, as_json=as_json)
            failure = str(error or "")
            if report is not None and as_json:
                print_json(asdict(report))
            elif report is not None:
                console.print(f"[dim]{datetime.now().astimezone():%H:%M:%S}[/]", end=" ")
                place = _place(chosen.index, target)
                _show(_news(report, known), place, console, verbose=verbose)
                known = report


def _named(loaders: Sequence[str]) -> Mapping[str, Loader]:
    """Return the loaders; a module of the user's own may lie where the command is run."""
    import_from_here(loaders)
    return loaders_with(loaders)


def _news(report: IndexReport, known: IndexReport) -> IndexReport:
    """Leave out what the report before said too."""
    return replace(
        report,
        skipped=tuple(one for one in report.skipped if one not in known.skipped),
        unsupported=tuple(one for one in report.unsupported if one not in known.unsupported),
        warning="" if report.warning == known.warning else report.warning,
    )


def _place(given: str, index: DocumentIndex) -> str:
    """Return a location as it may be shown: a folder as given, a URL without its password."""
    return index.location if "://" in given else given


def _show(report: IndexReport, location: str, console: Console, *, verbose: bool) -> None:
    console.print(
        f"{location}: {report.added} added, {report.changed} changed, "
        f"{report.unchanged} unchanged, {report.removed} removed "
        f"({report.chunks} chunks in {report.seconds:.1f} s)",
        highlight=False,
    )
    shown = report.skipped if verbose else report.skipped[:_SKIPPED_SHOWN]
    for source, reason in shown:
        console.print(f"  [yellow]skipped[/] {escape(source)}: {escape(reason)}", highlight=False)
    if hidden := len(report.skipped) - len(shown):
        console.print(f"  … and {hidden} more (--verbose shows all)", highlight=False)
    _show_unread([Path(name) for name in report.unsupported], console, verbose=verbose)
    for warning in filter(None, (report.warning, report.language_warning)):
        console.print(f"[bold yellow]Warning:[/] {escape(warning)}", highlight=False)


def _show_unread(files: Sequence[Path], console: Console, *, verbose: bool) -> None:
    """Print the files that no loader reads: by kind with counts, or one by one."""
    kinds = Counter(
        (file.suffix.lower() or "without suffix", reason_unread(file)) for file in files
    )
    for (suffix, reason), number in kinds.most_common(None if verbose else _KINDS_SHOWN):
        console.print(f"  [dim]not read: {number} {escape(suffix)} ({reason})[/]", highlight=False)
    if not verbose and len(kinds) > _KINDS_SHOWN:
        rest = f"{len(kinds) - _KINDS_SHOWN} more kinds (--verbose names all files)"
        console.print(f"  [dim]… and {rest}[/]", highlight=False)
    for file in files if verbose else ():
        console.print(f"  [dim]not read: {escape(str(file))}[/]", highlight=False)
