"""The head of a GGUF file: what the model is, without loading it.

The package `gguf` reads the vocabulary token by token into arrays, which takes seconds; here it is
skipped. The format is described in llama.cpp's repository (ggml, docs/gguf.md).
"""

import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from crag.errors import ModelError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
"""Letters of `struct` by the number of the type."""
_MOST_ENTRIES, _LONGEST = 100_000, 100_000_000
"""Entries of a head or bytes of a text beyond which a file is damaged, not large."""


class GgufHead(NamedTuple):
    """What a GGUF file says of its model."""

    architecture: str
    context: int
    """Tokens that the model was trained to read at once; 0 if the file does not say."""
    has_template: bool
    """Whether it has a chat template, as instructed models do."""
    size: int
    """Bytes of the file."""


def read_head(path: Path) -> GgufHead:
    """Read the head of the file at `path`.

    Raises:
        ModelError: there is no such file, it cannot be read, or it is no GGUF file.
    """
    name = f"file:{path}"
    try:
        with path.open("rb") as file:
            entries = _entries(file)
        size = path.stat().st_size
    except OSError as error:
        message = f"it cannot be read: {error.strerror}; name a GGUF file after file:"
        raise ModelError(name, "unknown", message) from error
    except (struct.error, ValueError, KeyError) as error:
        message = "it is no GGUF file, or it is damaged; download it again"
        raise ModelError(name, "unknown", message) from error
    architecture = str(entries.get("general.architecture", ""))
    context = entries.get(f"{architecture}.context_length", 0)
    return GgufHead(
        architecture=architecture,
        context=context if isinstance(context, int) else 0,
        has_template=bool(entries.get("tokenizer.chat_template")),
        size=size,
    )


def _entries(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != _MAGIC:
        raise ValueError("no magic number")
    version, _, count = _unpack(file, "IQQ")
    if version not in _VERSIONS or count > _MOST_ENTRIES:
        raise ValueError("another version")
    entries: dict[str, Any] = {}
    for _ in range(count):
        key = _text(file)
        entries[key] = _value(file, *_unpack(file, "I"))
    return entries


def _value(file: BinaryIO, kind: int) -> Any:
    """Read a value; the members of an array are skipped."""
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _unpack(file, _NUMBERS[kind])[0]
    member, length = _unpack(file, "IQ")
    if member == _STRING:
        for _ in range(length):
            file.seek(_length(file), 1)
    else:
        file.seek(length * struct.calcsize(_NUMBERS[member]), 1)
    return None


def _text(file: BinaryIO) -> str:
    return file.read(_length(file)).decode("utf-8", "replace")


def _length(file: BinaryIO) -> int:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST:
        raise ValueError("a text is too long")
    return int(length)


def _unpack(file: BinaryIO, letters: str) -> tuple[Any, ...]:
    letters = f"<{letters}"
    return struct.unpack(letters, file.read(struct.calcsize(letters)))
