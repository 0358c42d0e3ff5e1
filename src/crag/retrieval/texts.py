"""Bytes to text: encodings, binary content, characters that cannot be stored."""

import codecs
from pathlib import Path

from crag.errors import SourceError

_BLOCK = 1 << 20
_SAMPLE = 256 * 1024
_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path) -> str:
    """Read a text file with line feeds as its only line ends.

    Raises:
        SourceError: it cannot be read, looks binary, or is in no known encoding.
    """
    data = read_bytes(path)
    text = decode(data, path)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        SourceError: the operating system refuses.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error


def check_readable(path: Path) -> None:
    """Check that a file can be opened.

    Raises:
        SourceError: the operating system refuses.
    """
    try:
        path.open("rb").close()
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error


def decode(data: bytes, path: Path) -> str:
    """Decode UTF-8 (with or without byte order mark), otherwise the likeliest encoding.

    Raises:
        SourceError: see `read_text`.
    """
    if data.startswith(_BYTE_ORDER_MARKS):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data:
        raise SourceError(str(path), "looks binary: it holds NUL bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode(_likeliest(data[:_SAMPLE], path), errors="replace")


def encoding_of(path: Path) -> str:
    """Find the encoding of a file that is too large to hold, reading it once.

    Raises:
        SourceError: see `read_text`.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    sample = b""
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                sample = sample or block[:_SAMPLE]
                if sample.startswith(_BYTE_ORDER_MARKS):
                    return "utf-16"
                if b"\0" in block:
                    raise SourceError(str(path), "looks binary: it holds NUL bytes")
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return _likeliest(sample, path)
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error
    return "utf-8-sig"


def storable(text: str) -> str:
    """Replace what no database or tokenizer takes (lone surrogates, NUL), one for one."""
    return text.encode("utf-8", errors="replace").decode().replace("\0", "\ufffd")


def reason_of(error: OSError) -> str:
    """Say what the operating system said, without the path."""
    return f"cannot be read: {error.strerror or error}"


def _likeliest(sample: bytes, path: Path) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    if best is None:
        raise SourceError(str(path), "its encoding is unknown: save it as UTF-8")
    return str(best.encoding)
