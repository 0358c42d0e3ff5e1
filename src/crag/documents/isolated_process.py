"""The program that reads files for `crag.documents.isolated`: one request, one line of JSON, each.

It imports no more than the loaders do, so that it starts in a fraction of a second.
"""

import base64
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from crag.documents.loaders import TOO_MUCH_MEMORY, holds_records, load
from crag.documents.sources import Loaded, SourceText, Unusable, renamed
from crag.documents.splitting import ChunkText, chunk_texts
from crag.errors import ContentError

MOST_OUTPUT = 30_000_000
"""Bytes of JSON that any file may become: documents and their chunks."""
GROWTH, GROWTH_OF_RECORDS = 6, 32
"""Bytes of JSON for each byte of a file that come on top; a row repeats the names of its columns.
"""
_FRAME, _CHUNKS = 1 << 16, 100
"""Characters of documents, and chunks of one, that are written together."""
_LONG = 40_000
"""Characters of a record that the caller leaves to this process to split."""
_LARGEST_FILE = 100_000_000
"""Bytes of a file that is written: the model that tells languages is unpacked into one, 68 MB."""
_LASTING = 400
"""Megabytes that a file may leave behind; with more, the next one gets a new process."""
_NEAR = 0.8
"""Share of the memory allowed above which a failure is put down to memory."""


def main() -> None:
    """Answer requests until the caller closes the pipe or dies."""
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    written = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What native code prints is no answer.
    _confine(megabytes)
    requests = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        output = _Output(written, seconds)
        if "quotations" in request:
            _draw(request, output)
        else:
            _read(request, megabytes, output)
        # The memory of a large file is not given back, and the next file is to have all of it.
        ends = _memory("VmSize") > _LASTING
        output.end({"ends": ends})
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


def _read(request: Mapping[str, Any], megabytes: int, output: "_Output") -> None:
    """Read a file, and split its documents where that may take long."""
    path, name, held = Path(request["path"]), Path(request["name"]), request["held"]
    records = holds_records(path)
    size = path.stat().st_size if path.exists() else 0
    output.room = MOST_OUTPUT + (GROWTH_OF_RECORDS if records else GROWTH) * size
    try:
        for loaded in load(path):
            one = renamed(loaded, path, name)
            chunks: Iterable[ChunkText] = ()
            if isinstance(one, SourceText):
                is_long = len(one.text) > _LONG or not records
                if held is not None and is_long and one.content_hash not in held:
                    chunks = chunk_texts(one, request["root"])
            elif not one.empty and _memory("VmPeak") > _NEAR * megabytes:
                one = Unusable(one.source, TOO_MUCH_MEMORY)
            output.add(one, chunks)
    except _FullError:
        problem = f"it says too much for a file of {size:,} bytes: split it into smaller files"
        output.fail(Unusable(str(name), problem))
    except MemoryError:
        output.fail(Unusable(str(name), TOO_MUCH_MEMORY))
    except Exception as error:  # noqa: BLE001 - what splitting raises ends no other file either
        problem = f"damaged, or not what it seems ({type(error).__name__})"
        output.fail(Unusable(str(name), problem))


def _draw(request: Mapping[str, Any], output: "_Output") -> None:
    """Draw a page of a PDF, with quotations marked."""
    from crag.text.pdf_picture import picture_of_page

    path, page, quotations = Path(request["path"]), request["page"], request["quotations"]
    try:
        png, marked = picture_of_page(path, page, quotations)
        output.line({"png": base64.b64encode(png).decode(), "marked": marked})
    except ContentError as error:
        output.line({"problem": error.problem})
    except MemoryError:
        output.line({"problem": TOO_MUCH_MEMORY})


class _FullError(Exception):
    """A file has become more than it may."""


class _Output:
    """Writes what a file holds as lines of JSON, each within its time."""

    def __init__(self, file: BinaryIO, seconds: float) -> None:
        self._file, self._seconds = file, seconds
        self._waiting, self._size = list[str](), 0
        self.room = MOST_OUTPUT
        """Bytes."""
        self._alarm(seconds)

    def add(self, loaded: Loaded, chunks: Iterable[ChunkText]) -> None:
        """Write a document with its chunks, or nothing of it.

        Raises:
            _FullError: there is no room for it.
        """
        document = self._measured(asdict(loaded))
        parts = [self._measured(chunk) for chunk in chunks]
        self._waiting.append(document)
        self._size += len(document)
        if parts or self._size > _FRAME:
            self._flush()
        for start in range(0, len(parts), _CHUNKS):
            self._line(f'{{"chunks": [{", ".join(parts[start : start + _CHUNKS])}]}}')

    def fail(self, reason: Unusable) -> None:
        """Write why no more of the file can be read."""
        self.room = MOST_OUTPUT
        self.add(reason, ())

    def end(self, last: Mapping[str, object]) -> None:
        """Write what is left, and the last line."""
        self._flush()
        self.line(last)
        self._alarm(0)

    def line(self, answer: Mapping[str, object]) -> None:
        """Write one line."""
        self._line(json.dumps(answer))

    def _measured(self, value: object) -> str:
        text = json.dumps(value, ensure_ascii=False)
        self.room -= len(text.encode())
        if self.room < 0:
            raise _FullError
        return text

    def _flush(self) -> None:
        if self._waiting:
            self._line(f'{{"loaded": [{", ".join(self._waiting)}]}}')
        self._waiting, self._size = [], 0

    def _line(self, text: str) -> None:
        self._alarm(0)  # The caller may take its time.
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        self._alarm(self._seconds)

    def _alarm(self, seconds: float) -> None:
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
