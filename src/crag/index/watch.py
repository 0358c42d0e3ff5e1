"""Follow folders: index them, and again whenever something in them changes."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from crag.documents.loaders import LOADERS
from crag.documents.sources import Loader
from crag.errors import CragError, DocumentIndexError
from crag.index.ingest import index_paths
from crag.index.report import IndexReport, Progress
from crag.index.store import DocumentIndex
from crag.index.update import Reader

DEBOUNCE = 2000
"""Milliseconds over which changes are gathered at most, while more of them come."""
QUIET = 200
"""Milliseconds without a change after which those gathered are indexed."""
TICK = 1000
"""Milliseconds after which a wait is interrupted, to look whether the folders still exist."""
RETRY = 15
"""Ticks between attempts after a failure."""


class Outcome(NamedTuple):
    """The result of one run: a report, or what made it fail."""

    report: IndexReport | None = None
    error: CragError | None = None


def watch_paths(  # noqa: PLR0913 - one parameter for each choice
    paths: Iterable[str | Path],
    index: DocumentIndex,
    *,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
    loaders: Mapping[str, Loader] = LOADERS,
    reader: Reader | None = None,
) -> Iterator[Outcome]:
    """Index folders, then again after each change in them, and yield the outcome of each run.

    Every run is that of `index_paths`. Changes made during a run lead to another one. A run that
    fails, because a folder is missing, another process writes or a server is down, is tried again.
    Hidden files and the index itself do not count. Ends when `stop` is set, or by an exception.

    Raises:
        DocumentIndexError: a path is no folder, or the operating system cannot watch it.
    """
    folders = list(dict.fromkeys(Path(path).expanduser().resolve() for path in paths))
    for folder in folders:
        if not folder.is_dir():
            problem = "only folders are watched: name the folder that it is in"
            raise DocumentIndexError(str(folder), problem)
    stop = stop or threading.Event()
    run = partial(index_paths, folders, index, progress=progress, loaders=loaders, reader=reader)
    while not stop.is_set():
        if missing := [str(folder) for folder in folders if not folder.is_dir()]:
            yield Outcome(error=DocumentIndexError(missing[0], "this folder is missing"))
            while not (stop.wait(TICK / 1000) or all(folder.is_dir() for folder in folders)):
                pass
        else:
            yield from _while_there(folders, index, run, stop)


def _while_there(
    folders: Sequence[Path],
    index: DocumentIndex,
    run: Callable[[], IndexReport],
    stop: threading.Event,
) -> Iterator[Outcome]:
    """Follow folders until one of them is removed or replaced, which ends its notifications."""
    watched = list(map(_identity, folders))
    due, failed, ticks = True, False, 0
    for changed in _changes(folders, index, stop):
        if list(map(_identity, folders)) != watched:
            return
        ticks += 1
        if due or changed or (failed and ticks >= RETRY):
            try:
                outcome = Outcome(report=run())
            except CragError as error:
                outcome = Outcome(error=error)
            due, failed, ticks = False, outcome.error is not None, 0
            yield outcome


def _changes(
    folders: Sequence[Path], index: DocumentIndex, stop: threading.Event
) -> Iterator[bool]:
    """Yield at each tick, and when something changes, whether there was a change that counts."""
    from watchfiles import Change, watch

    stored = Path(index.location.rpartition("://")[2])

    def counts(_: Change, name: str) -> bool:
        path = Path(name)
        within = [path.relative_to(one).parts for one in folders if path.is_relative_to(one)]
        hidden = any(part.startswith(".") for parts in within for part in parts)
        return not hidden and not path.is_relative_to(stored)

    try:
        for changes in watch(
            *folders,
            watch_filter=counts,
            debounce=DEBOUNCE,
            step=QUIET,
            stop_event=stop,
            rust_timeout=TICK,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            yield bool(changes)
    except (OSError, RuntimeError) as error:
        fix = "WATCHFILES_FORCE_POLLING=true looks for changes without its help"
        problem = f"the operating system cannot watch it: {error}. {fix}"
        raise DocumentIndexError(str(folders[0]), problem) from error


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another one at the same place; None if there is none."""
    with suppress(OSError):
        state = folder.stat()
        return state.st_dev, state.st_ino
    return None
