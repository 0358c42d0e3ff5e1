"""Read files in a process of their own, within limits: one bad file costs no more than itself.

What reads PDF, office formats, books and markup is foreign, and partly native code. A file of a
kilobyte can make it fill the memory, compute for hours or crash, and with it the server. So it runs
in a process that may take so much memory and time, and answers in JSON, since a file could have
taken it over; when it ends, the file is reported and the next one gets a new process. This file is
its program too: `main` answers each request with a line.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter

from crag.documents.loaders import (
    LOADERS,
    OF_RECORDS,
    PLAIN,
    TOO_MUCH_MEMORY,
    load,
    loader_of,
)
from crag.documents.sources import Loaded, Loader, SourceText, Unusable
from crag.errors import ContentError
from crag.text.pdf_picture import Picture, picture_of_page

HARMLESS = 40_000
"""Bytes of plain text, source code or JSON up to which no other process is needed: no native code
reads them, and the tests show that as many of any shape take less than two seconds."""
_TO_START, _GRACE = 60.0, 5.0
"""Seconds to start, and those after which its caller ends a process that has not ended itself."""
_MOST_OUTPUT, _GROWTH, _GROWTH_OF_RECORDS = 30_000_000, 6, 32
"""Bytes of JSON that any file may become, and those for each of its bytes that come on top; a row
repeats the names of its columns."""
_LARGEST_FILE = 100_000_000
"""Bytes of a file that is written, such as a temporary one of a library."""
_LASTING = 2_000_000
"""Bytes of a file after which the next one gets a new process, with all of the memory."""
_KEPT_VARIABLES = ("PATH", "LANG", "LC_", "TMP", "TEMP", "SYSTEMROOT", "LD_", "DYLD_", "PYTHON")
"""Beginnings of the names of variables that the process is told; keys are none of them."""

_AnswerT = TypeVar("_AnswerT")
_BYTES = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_DOCUMENTS = TypeAdapter(list[SourceText | Unusable])
_PICTURE = TypeAdapter(tuple[Picture | Unusable], config=_BYTES)
"""What the process answers, and nothing else."""
_NO_ANSWER = "the process that read it gave no answer: damaged?"


class Limits(NamedTuple):
    """What reading one file may take."""

    seconds: float = 60.0
    megabytes: int = 1500
    """Address space; Windows and macOS do not limit it."""


class IsolatedReader(AbstractContextManager["IsolatedReader"]):
    """Reads one file after the other, for one caller at a time; close it after use.

    The process starts with the first file that needs it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path, loaders: Mapping[str, Loader] = LOADERS) -> Iterator[Loaded]:
        """Yield the documents of a file as `load` does, or how a limit was exceeded.

        Loaders that are not packaged run in this process, without limits.
        """
        if loader_of(path, loaders) is not loader_of(path) or _is_harmless(path):
            yield from load(path, loaders)
            return
        try:
            yield from self._answer({"path": str(path)}, path, _DOCUMENTS)
        except ContentError as error:
            yield Unusable(str(path), error.problem)

    def picture(self, path: Path, page: int, quotations: Sequence[str]) -> Picture:
        """Return a page of a PDF, with quotations marked.

        Raises:
            ContentError: it cannot be drawn within the limits.
        """
        request = {"path": str(path), "page": page, "quotations": list(quotations)}
        (drawn,) = self._answer(request, path, _PICTURE)
        if isinstance(drawn, Unusable):
            raise ContentError(drawn.reason)
        return drawn

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError), self._process:
                self._process = None

    def _answer(
        self, request: Mapping[str, object], path: Path, kind: TypeAdapter[_AnswerT]
    ) -> _AnswerT:
        """Return what the process answers; it goes on with the next request if nothing is amiss."""
        goes_on = False
        try:
            size, seconds = path.stat().st_size, self.limits.seconds + _GRACE
            growth = _GROWTH_OF_RECORDS if loader_of(path) in OF_RECORDS else _GROWTH
            if self._process is None:
                self._process, seconds = _started(self.limits), seconds + _TO_START
            process = self._process
            with suppress(BrokenPipeError):  # How it ended is told when its answer is missing.
                requests = cast("IO[bytes]", process.stdin)
                requests.write(json.dumps(request).encode() + b"\n")
                requests.flush()
            line = self._line(process, _MOST_OUTPUT + growth * size, seconds)
            answer = kind.validate_json(line)
            goes_on = size < _LASTING
        except OSError as error:
            reason = error.strerror or type(error).__name__
            problem = f"it, or the process to read it, cannot be opened: {reason}"
            raise ContentError(problem) from error
        except ValueError as error:
            raise ContentError(_NO_ANSWER) from error
        finally:
            if not goes_on:
                self.close()
        return answer

    def _line(self, process: "subprocess.Popen[bytes]", room: int, seconds: float) -> bytes:
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        until = time.monotonic() + seconds
        line = cast("IO[bytes]", process.stdout).readline(room)
        is_late = time.monotonic() >= until
        timer.cancel()
        if line.endswith(b"\n"):
            return line
        if line:
            raise ContentError("it says too much for its size: split it into smaller files")
        code = process.wait()
        if is_late or -code == getattr(signal, "SIGALRM", None):
            most = f"{self.limits.seconds:g} seconds"
            problem = f"reading it takes more than {most}: split it, or raise CRAG_READ_SECONDS"
            raise ContentError(problem)
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        most = f"{self.limits.megabytes:,} MB (CRAG_READ_MEGABYTES)"
        problem = f"what reads it ended by {how}: it is damaged, or needs more memory than {most}"
        raise ContentError(problem)


def _started(limits: Limits) -> "subprocess.Popen[bytes]":
    """Start the process; `-P` keeps modules of the folder that it is started in out of it."""
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT_VARIABLES)}
    return subprocess.Popen(  # noqa: S603 - a program of our own
        [sys.executable, "-P", "-m", __name__, str(limits.megabytes), str(limits.seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _is_harmless(path: Path) -> bool:
    with suppress(OSError):
        return loader_of(path) in PLAIN and path.stat().st_size <= HARMLESS
    return False


def main() -> None:
    """Answer requests until the caller closes the pipe or dies."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What native code prints is no answer.
    _confine(int(sys.argv[1]))
    for request in sys.stdin.buffer:
        _alarm(float(sys.argv[2]))
        output.write(_answered(json.loads(request)) + b"\n")
        output.flush()
        _alarm(0)


def _answered(request: Mapping[str, Any]) -> bytes:
    path = Path(request["path"])
    try:
        if "quotations" in request:
            return _PICTURE.dump_json(
                (picture_of_page(path, request["page"], request["quotations"]),)
            )
        return _DOCUMENTS.dump_json(list(load(path)), exclude_defaults=True)
    except (ContentError, MemoryError) as error:
        reason = getattr(error, "problem", TOO_MUCH_MEMORY)
        return _DOCUMENTS.dump_json([Unusable(str(path), reason)])


def _alarm(seconds: float) -> None:
    """Have the system end this process after so many seconds, whatever code is running."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _confine(megabytes: int) -> None:
    """Take from this process what reading a file does not need, where the system can do so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends this.
    with suppress(ImportError, OSError, ValueError):
        import resource

        limits = {
            resource.RLIMIT_AS: megabytes * 1_000_000,
            resource.RLIMIT_FSIZE: _LARGEST_FILE,
            resource.RLIMIT_CORE: 0,
        }
        for kind, wanted in limits.items():
            _, hard = resource.getrlimit(kind)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (most, most))
    with suppress(OSError):  # Of all processes, Linux is to end this one first.
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


if __name__ == "__main__":
    main()
