"""Files to text."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag.errors import SourceError
from crag.text.encodings import decoded, likeliest, marked

_BLOCK = 1 << 20
_SAMPLE = 256 * 1024


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses within the block into a `SourceError`."""
    try:
        yield
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        SourceError: the operating system refuses.
    """
    with reading(path):
        return path.read_bytes()


def read_text(path: Path) -> str:
    """Read a text file with line feeds as its only line ends.

    Raises:
        SourceError: the operating system refuses.
        ContentError: it looks binary.
    """
    text = decoded(read_bytes(path), "text/plain")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def encoding_of(path: Path) -> str:
    """Find the encoding of a file that is too large to hold, reading it once.

    Raises:
        SourceError: the operating system refuses, or it looks binary.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    sample = b""
    try:
        with reading(path), path.open("rb") as file:
            while block := file.read(_BLOCK):
                sample = sample or block[:_SAMPLE]
                if encoding := marked(sample):
                    return encoding
                if b"\0" in block:
                    raise SourceError(str(path), "looks binary: it holds NUL bytes")
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return likeliest(sample)
    return "utf-8"


def reason_of(error: OSError) -> str:
    """Say what the operating system said, without the path."""
    return f"cannot be read: {error.strerror or error}"
