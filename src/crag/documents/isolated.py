"""Read files in a process of their own, within limits: one bad file costs no more than itself.

What reads PDF, office formats, books and markup is foreign, and partly native code. A file of a
kilobyte can make it fill the memory, compute for hours or crash, and with it the server. So it runs
in a process that may take so much memory and time, and answers in JSON; when it ends, the file is
reported and the next one gets a new process. `isolated_process` is its program.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from crag.documents.isolated_process import GROWTH, GROWTH_OF_RECORDS, MOST_OUTPUT, restored
from crag.documents.loaders import LOADERS, PLAIN, load, loader_of
from crag.documents.sources import Loaded, Loader, Unusable, renamed
from crag.errors import ContentError
from crag.text.pdf_picture import Picture

HARMLESS = 40_000
"""Bytes of plain text, source code or Markdown up to which no other process is needed: no native
code reads them, and the tests show that as many of any shape take less than two seconds."""
_GRACE = 5.0
"""Seconds after which a process is ended that did not end itself in time."""
_KEPT_VARIABLES = ("PATH", "LANG", "LC_", "TMP", "TEMP", "SYSTEMROOT", "LD_", "DYLD_", "PYTHON")
"""Beginnings of the names of variables that the process is told; keys are none of them."""


class Limits(NamedTuple):
    """What reading one file may take."""

    seconds: float = 60.0
    """Of a file with many records, the time until the next ones."""
    megabytes: int = 1500
    """Address space; Windows and macOS do not limit it."""


class IsolatedReader:
    """Reads one file after the other, for one caller at a time; close it after use.

    The process starts with the first file that needs it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._late = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(
        self, path: Path, *, loaders: Mapping[str, Loader] = LOADERS, name: Path | None = None
    ) -> Iterator[Loaded]:
        """Yield the documents of a file as `load` does, and how a limit was exceeded.

        Loaders that are not packaged run in this process, without limits. `name` is the path that
        the documents are to have.
        """
        name = name or path
        if loader_of(path, loaders) is not loader_of(path) or _is_harmless(path):
            for loaded in load(path, loaders):
                yield renamed(loaded, path, name)
            return
        try:
            self._ask({"path": str(path), "name": str(name)})
            longest = _longest(path)
            while "ends" not in (answer := self._answer(longest)):
                yield restored(answer)
        except _LostError as lost:
            self.close()
            yield Unusable(str(name), str(lost))
        except BaseException:  # What else it would answer is not asked for any more.
            self.close()
            raise
        else:
            if answer["ends"]:
                self.close()

    def picture(self, path: Path, page: int, quotations: Sequence[str]) -> Picture:
        """Return a page of a PDF, with quotations marked.

        Raises:
            ContentError: it cannot be drawn within the limits.
        """
        try:
            self._ask({"path": str(path), "page": page, "quotations": list(quotations)})
            drawn, last = self._answer(MOST_OUTPUT), self._answer(MOST_OUTPUT)
        except _LostError as lost:
            self.close()
            raise ContentError(str(lost)) from lost
        if last["ends"]:
            self.close()
        if "problem" in drawn:
            raise ContentError(drawn["problem"])
        return Picture(base64.b64decode(drawn["png"]), drawn["marked"])

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError), self._process:
                self._process = None

    def _ask(self, request: Mapping[str, object]) -> None:
        try:
            if self._process is None:
                self._process = _started(self.limits)
            requests = cast("IO[bytes]", self._process.stdin)
            requests.write(json.dumps(request).encode() + b"\n")
            requests.flush()
        except BrokenPipeError:
            pass  # How it ended is told when its answer is missing.
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise _LostError(f"the process that reads files cannot start: {reason}") from error

    def _answer(self, longest: int) -> dict[str, Any]:
        process = cast("subprocess.Popen[bytes]", self._process)
        answers = cast("IO[bytes]", process.stdout)
        self._late = False
        timer = threading.Timer(self.limits.seconds + _GRACE, self._end, (process,))
        timer.daemon = True
        timer.start()
        try:
            line = answers.readline(longest)
        finally:
            timer.cancel()
            timer.join()
        if line.endswith(b"\n"):
            try:
                return cast("dict[str, Any]", json.loads(line))
            except ValueError as error:
                raise _LostError("the process that read it gave no answer: damaged?") from error
        if line:
            raise _LostError("it says too much for its size: split it into smaller files")
        raise _LostError(self._how_it_ended(process))

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        self._late = True
        process.kill()

    def _how_it_ended(self, process: "subprocess.Popen[bytes]") -> str:
        code = process.wait()
        if self._late or code == -getattr(signal, "SIGALRM", 0):
            most = f"{self.limits.seconds:g} seconds"
            return f"reading it takes more than {most}: split it, or raise CRAG_READ_SECONDS"
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        most = f"{self.limits.megabytes:,} MB (CRAG_READ_MEGABYTES)"
        return f"what reads it ended by {how}: it is damaged, or needs more memory than {most}"


class _LostError(Exception):
    """The process gave no answer; the message says why."""


def _started(limits: Limits) -> "subprocess.Popen[bytes]":
    """Start the process; `-P` keeps modules of the folder that it is started in out of it."""
    seconds, megabytes = limits
    command = [sys.executable, "-P", "-m", "crag.documents.isolated_process"]
    return subprocess.Popen(  # noqa: S603 - a program of our own
        [*command, str(seconds), str(megabytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT_VARIABLES)}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _is_harmless(path: Path) -> bool:
    try:
        return loader_of(path) in PLAIN and path.stat().st_size <= HARMLESS
    except OSError:
        return False


def _longest(path: Path) -> int:
    """Return the bytes of the longest line that the process may answer with."""
    with suppress(OSError):
        return MOST_OUTPUT + max(GROWTH, GROWTH_OF_RECORDS) * path.stat().st_size
    return MOST_OUTPUT
