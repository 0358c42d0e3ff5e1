"""What the commands share: the environment, settings, and safe output on the terminal."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.errors import CragError, SettingsError

if TYPE_CHECKING:
    from crag.runtime.environment import Environment

SOME_FAILED = 1
"""Exit code of a command that asks many questions, where some of them have failed."""


def environment(location: str | None = None) -> "Environment":
    """Return the environment, with the index from the command line."""
    from crag.runtime.environment import Environment

    found = Environment()
    return found.model_copy(update={"index": location}) if location else found


def assigned(assignments: Sequence[str] | None) -> dict[str, object]:
    """Read ``name=value`` texts.

    Raises:
        SettingsError: a text without ``=``, or without a name before it.
    """
    values: dict[str, object] = {}
    for assignment in assignments or ():
        name, separator, value = (part.strip() for part in assignment.partition("="))
        if not (name and separator):
            raise SettingsError(name, value, "write it as name=value")
        values[name] = value
    return values


def print_json(value: object) -> None:
    """Print one JSON value on standard output, for scripts."""
    import json

    as_ascii = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    sys.stdout.write(json.dumps(value, ensure_ascii=as_ascii) + "\n")


def print_summary(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what many questions came to: counts, and shares from 0 to 1."""
    if as_json:
        return print_json(summary)
    for name, value in summary.items():
        shown = f"{value:.4g}" if isinstance(value, float) else value
        if isinstance(value, dict):
            shown = ", ".join(f"{number:,} {key}" for key, number in value.items())
        if shown not in {"", None}:
            say(f"{name.replace('_', ' ')}: {safe(shown)}")
    return None


def print_error(error: CragError, *, as_json: bool) -> None:
    """Print an error: as JSON on standard output, or in words on standard error."""
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": str(error)}})
    else:
        say(f"[bold red]Error:[/] {safe(error)}", stderr=True)


def say(text: str = "", *, stderr: bool = False) -> None:
    """Print a line with rich's markup; it is not wrapped, so that paths stay whole."""
    from rich.console import Console

    Console(stderr=stderr, highlight=False).print(text, soft_wrap=True)


def safe(text: object) -> str:
    """Escape text so that it cannot style or control the terminal."""
    from rich.markup import escape

    from crag.text.untrusted import without_controls

    return escape(without_controls(str(text)))


def from_here(path: str) -> str:
    """Return a path as somebody in this folder would write it, on one line."""
    here = Path.cwd()
    shown = Path(path).relative_to(here) if path and Path(path).is_relative_to(here) else path
    return " ".join(str(shown).splitlines())


@contextmanager
def progress_bar(task: str, *, quiet: bool) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error, and yield what moves it.

    That takes the number done, perhaps the total, and another label.
    """
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, quiet=quiet), transient=True) as progress:
        bar = progress.add_task(task, total=None)

        def advance(done: int, total: int | None = None, label: str = "", /) -> None:
            progress.update(bar, completed=done, total=total, description=safe(label[-40:] or task))

        yield advance
