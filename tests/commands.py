"""The command `crag`, in this process or in one of its own."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from crag.papers.cli import main

CRAG = Path(sys.executable).with_name("crag")
_OURS = ("OPENAI_", "TAVILY_", "SEARXNG_", "CRAG_", "LANGSMITH_", "LANGCHAIN_", "OTEL_")


class Done(NamedTuple):
    """What a command wrote and returned."""

    stdout: str
    stderr: str
    returncode: int


def heeds_ctrl_c() -> None:
    """Undo what a shell does to commands that it starts in the background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def variables(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without keys and settings of ours, and with `added`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return kept | {"LANGSMITH_TRACING": "false", "COLUMNS": "200"} | dict(added)


def crag(
    *arguments: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    answer: str = "",
) -> Done:
    """Run `crag` in this process, which has loaded already what a new one would load again."""
    out, err = io.StringIO(), io.StringIO()
    code: str | int | None = 0
    with (
        patch.dict(os.environ, variables(environment or {}), clear=True),
        patch.object(sys, "argv", ["crag", *map(str, arguments)]),
        patch.object(sys, "stdin", io.StringIO(answer)),
        contextlib.chdir(folder or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return Done(out.getvalue(), err.getvalue(), code if isinstance(code, int) else int(bool(code)))
