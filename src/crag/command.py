"""The entry point of the command `crag`.

Loading the command line takes a moment, in which users may already press Ctrl-C.
"""

import os
import sys
from importlib import import_module
from io import TextIOWrapper

FAILED, USAGE_ERROR, INTERRUPTED = 1, 2, 130
"""Exit codes: a reader of the output has gone; something is wrong that users can mend; Ctrl-C."""


def _open_streams() -> None:
    """Open what the caller has closed; replace characters that cannot be read or written."""
    for name in ("stdin", "stdout", "stderr"):
        if (stream := getattr(sys, name)) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def main(module: str = "crag.cli.app") -> None:
    """Run a command line; end with one line where the system refuses something."""
    _open_streams()
    code: int | str | None = 0
    try:
        try:
            import_module(module).main()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        # The interpreter writes what is left to nowhere; it would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = FAILED if isinstance(error, BrokenPipeError) else USAGE_ERROR
        if code == USAGE_ERROR:
            place = f": {error.filename}" if error.filename else ""
            sys.stderr.write(f"Error: {error.strerror or type(error).__name__}{place}\n")
    sys.exit(code)
