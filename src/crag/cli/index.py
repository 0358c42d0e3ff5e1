"""`crag index`: index documents, with a progress bar and a report."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from crag.cli.terminal import environment, print_json, progress_bar
from crag.factory import choose_encoder
from crag.retrieval import DocumentIndex, IndexReport, index_paths

_SKIPPED_SHOWN = 20


def run(paths: Sequence[Path], location: str | None, *, remove: bool, as_json: bool) -> None:
    """Index `paths`, or remove them, and report what was done and skipped."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # The report has everything that matters.
    chosen = environment(location)
    target = DocumentIndex(chosen.index, choose_encoder(chosen))
    with progress_bar("indexing", quiet=as_json) as advance:

        def shown(done: int, total: int | None, source: str) -> None:
            advance(done, total, Path(source).name)

        report = index_paths(paths, target, progress=shown, remove=remove)
    if as_json:
        print_json(asdict(report))
    else:
        _show(report, target.location, Console())


def _show(report: IndexReport, location: str, console: Console) -> None:
    console.print(
        f"{location}: {report.added} added, {report.changed} changed, "
        f"{report.unchanged} unchanged, {report.removed} removed "
        f"({report.chunks} chunks in {report.seconds:.1f} s)",
        highlight=False,
    )
    for source, reason in report.skipped[:_SKIPPED_SHOWN]:
        console.print(f"  [yellow]skipped[/] {escape(source)}: {escape(reason)}", highlight=False)
    if len(report.skipped) > _SKIPPED_SHOWN:
        console.print(f"  … and {len(report.skipped) - _SKIPPED_SHOWN} more (--json shows all)")
    if report.unsupported:
        console.print(f"  [dim]{len(report.unsupported)} files of other formats ignored[/]")
