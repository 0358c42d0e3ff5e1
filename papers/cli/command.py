"""What every command of the papers does: it shows examples, and never overwrites what it reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

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
_VALUES: dict[Any, str] = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


class Command(TyperCommand):
    """A command whose switches show no type, ``--help`` included."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_plain(one) for one in super().get_params(ctx)]


class Group(TyperGroup):
    """A group of commands that does the same."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return [_plain(one) for one in super().get_params(ctx)]


def command(
    app: typer.Typer,
    *examples: str,
    name: str | None = None,
    extra: Extra | None = None,
    files: Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Add a command, with examples for its help and the extra that it needs.

    Options show the kind of their value. `files` are those that it writes where --output is a
    folder: a file that it reads is none of them, or it refuses to run.
    """
    told = "\n\n".join(["Examples:", *examples])
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

        name_values(function)
        app.command(name, cls=Command, epilog=told)(run)
        return function

    return add


def _refuse_overwriting(options: Mapping[str, Any], files: Sequence[str]) -> None:
    """Check that the options name nothing that the command would both write and read."""
    written: list[Path] = [options[name] for name in _WRITTEN if options.get(name)]
    if files:
        written += [options["output"] / file for file in files]
    read: list[Path] = []
    for name, value in options.items():
        paths = value if isinstance(value, list) else [value]
        read += [one for one in paths if isinstance(one, Path) and name not in _WRITTEN]
    refuse_overwriting(written, read)


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


def name_values(function: Function) -> None:
    """Name the values of all parameters that name none."""
    for parameter, hint in function.__annotations__.items():
        if not hasattr(hint, "__metadata__"):  # Annotated
            continue
        kind, info, *_ = get_args(hint)
        if isinstance(info, OptionInfo | ArgumentInfo) and info.metavar is None:
            info.metavar = _value(kind, parameter, info)


def _value(kind: Any, parameter: str, info: OptionInfo | ArgumentInfo) -> str | None:
    kinds = [one for one in get_args(kind) if one is not type(None)] or [kind]
    if isinstance(info, ArgumentInfo):
        return parameter.upper() + ("..." if get_origin(kind) is list else "")
    if kind is bool:
        return ""
    if get_origin(kind) is Literal or get_origin(kinds[0]) is Literal:
        return None  # Its choices are shown.
    inner = get_args(kinds[0]) or kinds
    return _VALUES.get(inner[0])


def _plain(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False):
        parameter.metavar = ""
    return parameter
