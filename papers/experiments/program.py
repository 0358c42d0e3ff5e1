"""Identify the program, so that rows of different programs are not mixed."""

import hashlib
from functools import cache
from pathlib import Path

import crag

_OTHERS = {"api.py", "asking", "cli", "papers", "serve", "views"}
"""Folders that take no part in answers, apart from these files:"""
_OF_EXPERIMENTS = ("answering.py", "baselines.py", "introductions.py", "methods.py", "published.py")
_SUFFIXES = {".py", ".md", ".json"}


@cache
def fingerprint() -> str:
    """Return twelve hexadecimal digits that change with any source file that takes part in answers.

    Weights are not included; a model is identified by its name, or what its folder says of it.
    """
    package = Path(crag.__file__).parent
    files = (path for path in package.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    names = {path.relative_to(package) for path in files}
    names = {name for name in names if name.parts[0] not in _OTHERS}
    digest = hashlib.sha256()
    for name in sorted(names | {Path("papers", "experiments", name) for name in _OF_EXPERIMENTS}):
        digest.update(name.as_posix().encode() + b"\0" + (package / name).read_bytes())
    return digest.hexdigest()[:12]
