"""Bring the index up to date with files and folders."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from crag.documents.loaders import LOADERS, find_files
from crag.documents.sources import Loader, file_of
from crag.errors import IndexNotFoundError
from crag.index.report import IndexReport, Progress, quiet
from crag.index.store import DocumentIndex
from crag.index.update import Reader, Update, reader_within


def index_paths(  # noqa: PLR0913 - one parameter for each choice
    paths: Iterable[str | Path],
    index: DocumentIndex,
    *,
    progress: Progress | None = None,
    remove: bool = False,
    reader: Reader | None = None,
    loaders: Mapping[str, Loader] = LOADERS,
) -> IndexReport:
    """Index files and folders, writing only what is new or has changed.

    Documents from these paths that no longer exist are removed; a source that has become unreadable
    keeps its chunks. Every document is replaced as a whole, and the next run completes a killed
    one. With `remove`, everything that was indexed under `paths` is removed instead, whether it
    still exists or not. `loaders` read files by suffix: `crag.documents.loaders_with` adds to them.
    The default `reader`, `reader_within(Limits())`, reads in a process of its own; what exceeds its
    limits is skipped. A `reader` of your own may read, split and embed elsewhere.

    Raises:
        DocumentIndexError: a path does not exist, a folder holds no supported file, or the index
            cannot be written.
    """
    started = time.monotonic()
    targets = list(dict.fromkeys(Path(path).expanduser().resolve() for path in paths))
    if remove:
        return _remove(targets, index, started)
    found = find_files(targets, loaders)
    if not found.files:
        return IndexReport(skipped=tuple(found.refused)).finished(started)
    with index.writing() as writer:
        reader = reader or reader_within()
        report = Update(writer, found, targets, progress or quiet, reader).run()
    return report.finished(started)


def _remove(targets: list[Path], index: DocumentIndex, started: float) -> IndexReport:
    if not index.exists():
        raise IndexNotFoundError(index.location)
    with index.writing() as writer:
        going = [
            entry
            for source, entry in writer.entries(targets).items()
            if any(Path(file_of(source, entry.position)).is_relative_to(path) for path in targets)
        ]
        writer.write((), removed=[identifier for entry in going for identifier in entry.ids])
    return IndexReport(removed=len(going)).finished(started)
