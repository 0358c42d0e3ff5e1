"""Identify the program, so that rows of different programs are not mixed."""

import hashlib
from functools import cache
from pathlib import Path

import crag

_OTHERS = {"api.py", "asking", "cli", "papers", "serve", "views"}
"""Folders that take no part in answers, apart from these files:"""
_OF_BENCHMARKS = (
    "bench/answering.py", "bench/baselines.py", "bench/introductions.py", "bench/methods.py",
    "released/published.py",
)  # fmt: skip
_SUFFIXES = {".py", ".md", ".json"}


@cache
def fingerprint() -> str:
    """Return twelve hexadecimal digits that change with any source file that takes part in answers.

    Weights are not included; a model is identified by its name, or what its folder says of it.
    """
    package, papers = Path(crag.__file__).parent, Path(__file__).parents[1]
    found = (path for path in package.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    files = {path.relative_to(package).as_posix(): path for path in found}
    files = {name: path for name, path in files.items() if name.split("/")[0] not in _OTHERS}
    files |= {f"papers/{name}": papers / name for name in _OF_BENCHMARKS}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
