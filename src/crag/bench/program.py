"""Identify the program, so that rows of different programs are not mixed."""

import hashlib
from functools import cache
from pathlib import Path

import crag

_ANSWERING = (
    ".", "graph", "nodes", "prompts", "evaluators", "generation", "reflection",
    "reflection/backends", "web",
)  # fmt: skip
_OF_BENCH = ("answering.py", "methods.py", "peers.py")
_SUFFIXES = {".py", ".md", ".json"}


@cache
def fingerprint() -> str:
    """Return twelve hexadecimal digits that change with any source file that takes part in answers.

    Weights are not included; an evaluator is identified by its name or folder.
    """
    package = Path(crag.__file__).parent
    files = [path for folder in _ANSWERING for path in sorted((package / folder).iterdir())]
    files += [package / "bench" / name for name in _OF_BENCH]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file() and path.suffix in _SUFFIXES:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
