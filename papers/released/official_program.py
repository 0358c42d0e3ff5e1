"""Programs of others, run as they are from a folder, with stand-ins for what they import."""

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self
from unittest import mock


class Count(NamedTuple):
    """How often an official program and ours are equal."""

    what: str
    equal: int
    runs: int
    failed: int = 0
    """Runs in which the official program failed, which are not counted."""


@contextlib.contextmanager
def program(folder: Path, name: str, stand_ins: Mapping[str, Any]) -> Iterator[ModuleType]:
    """Import the module `name` of a folder, silently; afterwards no trace of it is left.

    `stand_ins` are modules by name. The folder comes first, so that a program's own `utils` is
    found and not another one.

    Raises:
        SystemExit: the folder has no such file.
    """
    if not (folder / f"{name}.py").is_file():
        raise SystemExit(f"{folder / name}.py is not there: name the folder of the checkouts")
    # Only these names are put back: a module with compiled code cannot be loaded twice.
    names = {*stand_ins, *(path.stem for path in folder.glob("*.py"))}
    replaced = {each: sys.modules.pop(each) for each in names if each in sys.modules}
    sys.modules.update(stand_ins)
    try:
        with mock.patch.object(sys, "path", [str(folder), *sys.path]):
            importlib.invalidate_caches()
            with contextlib.redirect_stdout(io.StringIO()):
                loaded = importlib.import_module(name)
            yield loaded
    finally:
        for each in names:
            sys.modules.pop(each, None)
        sys.modules.update(replaced)


def run_main(loaded: ModuleType, arguments: Sequence[str]) -> str:
    """Call the function `main` of a program with its arguments, and return what it prints."""
    argv = mock.patch.object(sys, "argv", [loaded.__name__, *arguments])
    with argv, contextlib.redirect_stdout(io.StringIO()) as printed:
        loaded.main()
    return printed.getvalue()


def stand_in(**members: Any) -> Any:
    """Return a module that has these members and no others."""
    made = ModuleType("stand_in")
    vars(made).update(members)
    return made


class JsonLines:
    """What the programs use of the package jsonlines."""

    def __init__(self, path: str, mode: str = "r") -> None:
        self._file = open(path, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - closed at exit

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Any]:
        """Return the value of each line."""
        return (json.loads(line) for line in self._file)

    def write_all(self, values: Sequence[Any]) -> None:
        """Write each value as a line."""
        self._file.writelines(f"{json.dumps(value)}\n" for value in values)
