"""What the commands share: the environment, settings, and safe output on the terminal."""

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from crag.errors import CragError, SettingsError
from crag.runtime.environment import Environment
from crag.text.untrusted import without_controls

_NOTHING = {"", "none", "null"}
_LABEL = 40


def import_from_here(names: Iterable[str]) -> None:
    """Let ``module:attribute`` be of a module in the current folder, if one is among `names`.

    Only for names from the command line: a file of the folder, such as crag.toml, may be another's.
    """
    if any(":" in name.partition("://")[0] for name in names) and "" not in sys.path:
        sys.path.insert(0, "")


def environment(location: str | None) -> Environment:
    """Return the environment, with the index from the command line."""
    import_from_here([location or ""])
    found = Environment()
    return found.model_copy(update={"index": location}) if location else found


def filters(
    folder: str | None, kind: str | None, since: str | None, until: str | None
) -> list[str]:
    """Return options that filter documents as ``name=value`` texts.

    A folder that exists is named by its absolute path.
    """
    if folder and Path(folder).exists():
        folder = str(Path(folder).resolve())
    given = {"folder": folder, "kind": kind, "since": since, "until": until}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def assigned(assignments: Sequence[str]) -> dict[str, object]:
    """Read ``name=value`` texts; an empty value or `none` unsets an optional setting.

    Raises:
        SettingsError: a text without ``=``.
    """
    values: dict[str, object] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise SettingsError(assignment, "", "write it as name=value")
        values[name.strip()] = None if value.strip().lower() in _NOTHING else value.strip()
    return values


def print_json(value: object) -> None:
    """Print one JSON value on standard output, for scripts."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_error(error: CragError, *, as_json: bool) -> None:
    """Print an error: as JSON on standard output, or in words on standard error."""
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": str(error)}})
    else:
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]Error:[/] {safe(error)}", highlight=False)


def safe(text: object) -> str:
    """Escape text so that it cannot style or control the terminal."""
    from rich.markup import escape

    return escape(without_controls(str(text)))


def shortened(text: str, most: int) -> str:
    """Return the text on one line, truncated to `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


@contextmanager
def progress_bar(task: str, *, quiet: bool) -> Iterator[Callable[[int, int | None, str], None]]:
    """Show a progress bar on standard error.

    Yields a function that takes the number done, the total (None if unknown) and a label.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as progress:
        bar = progress.add_task(task, total=None)

        def advance(done: int, total: int | None, label: str) -> None:
            progress.update(bar, completed=done, total=total, description=safe(label[:_LABEL]))

        yield advance


def plain_table(*columns: str, **options: Any) -> Any:
    """Return a table without borders; `options` are those of rich's `Table`."""
    from rich.table import Table

    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), **options)


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Treat the signals that end a terminal or a service as Ctrl-C."""

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    # A shell starts what runs in its background with SIGINT ignored.
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), end) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
