"""The program that reads files for `crag.documents.isolated`: a request, and a line a document.

It imports no more than the loaders do, so that it starts in a fraction of a second.
"""

import base64
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from crag.documents.loaders import TOO_MUCH_MEMORY, holds_records, load
from crag.documents.sources import Loaded, SourceText, Unusable, renamed
from crag.errors import ContentError
from crag.text.blocks import as_json, from_json

MOST_OUTPUT = 30_000_000
"""Bytes of JSON that any file may become."""
GROWTH, GROWTH_OF_RECORDS = 6, 32
"""Bytes of JSON for each byte of a file that come on top; a row repeats the names of its columns.
"""
_LARGEST_FILE = 100_000_000
"""Bytes of a file that is written, such as a temporary one of a library."""
_LASTING = 400
"""Megabytes that a file may leave behind; with more, the next one gets a new process."""
_NEAR = 0.8
"""Share of the memory allowed above which a failure is put down to memory."""


def written(loaded: Loaded) -> dict[str, Any]:
    """Return a document, or why there is none, as objects of JSON."""
    if isinstance(loaded, Unusable):
        return vars(loaded)
    values = {one.name: getattr(loaded, one.name) for one in fields(loaded)}
    return values | {"blocks": list(map(as_json, loaded.blocks))}


def restored(values: dict[str, Any]) -> Loaded:
    """Return what `written` wrote."""
    if "reason" in values:
        return Unusable(**values)
    return SourceText(**{**values, "blocks": list(map(from_json, values["blocks"]))})


def main() -> None:
    """Answer requests until the caller closes the pipe or dies."""
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What native code prints is no answer.
    _confine(megabytes)
    requests = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        output = _Output(answers, seconds)
        if "quotations" in request:
            _draw(request, output)
        else:
            _read(Path(request["path"]), Path(request["name"]), megabytes, output)
        # The memory of a large file is not given back, and the next file is to have all of it.
        ends = _memory("VmSize") > _LASTING
        output.line({"ends": ends})
        output.alarm(0)
        if ends:
            return


def _receive(requests: "SimpleQueue[bytes]") -> None:
    """Pass requests on; end the process when the caller is gone, whatever it is busy with."""
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _confine(megabytes: int) -> None:
    """Take from this process what reading a file does not need, where the system can do so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends this.
    with contextlib.suppress(ImportError, OSError, ValueError):
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
    with contextlib.suppress(OSError):  # Of all processes, Linux is to end this one first.
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _read(path: Path, name: Path, megabytes: int, output: "_Output") -> None:
    size = path.stat().st_size if path.exists() else 0
    room = MOST_OUTPUT + (GROWTH_OF_RECORDS if holds_records(path) else GROWTH) * size
    try:
        for loaded in load(path):
            one = renamed(loaded, path, name)
            if (
                isinstance(one, Unusable)
                and not one.empty
                and _memory("VmPeak") > _NEAR * megabytes
            ):
                one = Unusable(one.source, TOO_MUCH_MEMORY)
            line = json.dumps(written(one)).encode()
            room -= len(line)
            if room < 0:
                problem = (
                    f"it says too much for a file of {size:,} bytes: split it into smaller files"
                )
                output.line(written(Unusable(str(name), problem)))
                return
            output.write(line)
    except MemoryError:
        output.line(written(Unusable(str(name), TOO_MUCH_MEMORY)))


def _draw(request: Mapping[str, Any], output: "_Output") -> None:
    """Draw a page of a PDF, with quotations marked."""
    from crag.text.pdf_picture import picture_of_page

    try:
        png, marked = picture_of_page(Path(request["path"]), request["page"], request["quotations"])
        output.line({"png": base64.b64encode(png).decode(), "marked": marked})
    except ContentError as error:
        output.line({"problem": error.problem})
    except MemoryError:
        output.line({"problem": TOO_MUCH_MEMORY})


class _Output:
    """Writes lines, each within its time."""

    def __init__(self, file: BinaryIO, seconds: float) -> None:
        self._file, self._seconds = file, seconds
        self.alarm(seconds)

    def line(self, answer: Mapping[str, object]) -> None:
        """Write one answer."""
        self.write(json.dumps(answer).encode())

    def write(self, line: bytes) -> None:
        """Write one line."""
        self.alarm(0)  # The caller may take its time.
        self._file.write(line + b"\n")
        self._file.flush()
        self.alarm(self._seconds)

    def alarm(self, seconds: float) -> None:
        """Have the system end this process after so many seconds, whatever code is running."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _memory(name: str) -> float:
    """Return a figure of this process in megabytes; 0 where the system tells none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024 / 1_000_000
    return 0


if __name__ == "__main__":
    main()
