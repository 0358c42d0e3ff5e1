"""What every command of the papers does: it shows examples, and never overwrites what it reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from crag.cli.app import examples as shown
from crag.errors import DataError
from crag.extras import Extra, how_to_install, require

Function = Callable[..., Any]
_MODULES: dict[Extra, tuple[str, ...]] = {
    "torch": ("torch", "transformers"),
    "train": ("accelerate", "sklearn"),
}
"""What of an extra its commands cannot do without; `bench` checks its own."""
_WRITTEN = ("output", "report", "cache")
"""Options that name what a command writes; the other paths are what it reads."""


class _WithDefault(TyperGroup):
    """A group whose first command runs when none is named, as in `crag train DATA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def group_of_commands(text: str) -> typer.Typer:
    """Return a group, of which the first command is the default."""
    return typer.Typer(
        cls=_WithDefault, help=text, no_args_is_help=True, add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


def command(
    app: typer.Typer,
    *examples: str,
    name: str | None = None,
    extra: Extra | None = None,
    files: Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Add a command, with examples for its help and the extra that it needs.

    `files` are those that it writes where --output is a folder: a file that it reads is none of
    them, or it refuses to run.
    """
    told = shown(*examples)
    if extra:
        told += "\n\nIt needs an extra. " + how_to_install(extra).replace("[", r"\[")

    def add(function: Function) -> Function:
        @wraps(function)
        def run(**options: Any) -> None:
            # Before the command reads files, which may be wrong, too.
            if extra is not None and extra in _MODULES:
                require(extra, f"crag {name or function.__name__}", *_MODULES[extra])
            _refuse_overwriting(options, files)
            function(**options)

        app.command(name, epilog=told)(run)
        return function

    return add


def _refuse_overwriting(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Check that the options name nothing that the command would both write and read."""
    written: list[Path] = [options[name] for name in _WRITTEN if options.get(name)]
    written += [options["output"] / file for file in files]
    given = [value for name, value in options.items() if name not in _WRITTEN]
    values = [one for value in given for one in (value if isinstance(value, list) else [value])]
    refuse_overwriting(written, [one for one in values if isinstance(one, Path)])


def refuse_overwriting(written: Iterable[Path], read: Iterable[Path]) -> None:
    """Check that nothing is both written and read, by whatever names.

    Raises:
        DataError: a file or a folder is.
    """
    sources = [path for path in read if _is_kept(path)]
    for output in filter(_is_kept, written):
        for source in filter(output.samefile, sources):
            problem = f"writing it would overwrite {source}, which is read. Choose another place"
            raise DataError(output, problem)


def _is_kept(path: Path) -> bool:
    return path.is_file() or path.is_dir()  # Not a terminal, or /dev/null.
