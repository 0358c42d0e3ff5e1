"""What is installed: the licences of all pinned packages.

`python -m tests.torture.supply` writes the list anew after a change of constraints.txt.
"""

import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS, LICENCES = (ROOT / name for name in ("constraints.txt", "LICENCES.md"))
HEAD = """# Licences of what crag runs with

The packages that `constraints.txt` pins, direct and indirect, with those for development, and the
licence that each names of itself. `make licences` writes this list from the installed packages.

The page comes with `src/crag/serve/static/marked.js`, a part of marked 18.2.1 that reads Markdown:
esbuild (`--bundle --minify --format=esm --target=es2022`) and terser (`-c passes=3 -m --module`)
made it of `_Lexer` in `Lexer.ts` and `_Tokenizer` in `Tokenizer.ts`, as the package's source map
holds them. Its licence, MIT, is `marked-LICENCE.txt` beside it.

The models in `src/crag/models/crag_minilm_l6_v2` and `src/crag/models/crag_reader_l6_v2` are
all-MiniLM-L6-v2 by the authors of sentence-transformers, fine-tuned by `crag train encoder` and
`crag train reader` and stored in 8 bits; `card.json` there names data and recipe. Its licence,
Apache-2.0, is `LICENCE.txt` beside each.

| package | version | licence |
|---|---|---|
"""
_LONGEST = 60
_CLASSIFIER = "License :: "


def pinned(path: Path) -> dict[str, str]:
    """Return the version of each package that a file of constraints pins."""
    text = path.read_text("utf-8")
    pins = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text, re.MULTILINE)
    return {normal(name): version for name, version in pins}


def normal(name: str) -> str:
    """Return the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, Distribution]:
    """Return the installed packages by name."""
    return {normal(one.metadata["Name"]): one for one in distributions()}


def licence_of(package: Distribution) -> str:
    """Return what a package says of its licence: an expression, classifiers, or a short text."""
    about = package.metadata
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [one for one in about.get_all("Classifier", []) if one.startswith(_CLASSIFIER)]
    named = [one.rpartition(" :: ")[2] for one in classifiers if one.count(" :: ") > 1]
    text = str(about.get("License") or "").strip()
    short = text if "\n" not in text and len(text) <= _LONGEST else ""
    return "; ".join(dict.fromkeys(named)) or short or _from_text(package, text)


def _from_text(package: Distribution, text: str) -> str:
    """Recognise a licence by its text, where a package names none."""
    files = [file for file in package.files or [] if "LICEN" in file.name.upper()]
    texts = [text, *(file.read_text() for file in files if file.locate().is_file())]
    whole = " ".join(" ".join(texts).split())
    if "Permission is hereby granted, free of charge" in whole:
        return "MIT"
    if "Apache License" in whole:
        return "Apache-2.0"
    if "Redistribution and use in source and binary forms" in whole:
        return "BSD"
    return "proprietary" if "NVIDIA" in whole else ""


def licences() -> str:
    """Return the whole list as Markdown."""
    found = installed()
    rows = [
        f"| {name} | {version} | {licence_of(found[name]).replace('|', '/')} |\n"
        for name, version in sorted(pinned(PINS).items())
        if name in found
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(f"{LICENCES.write_text(licences(), 'utf-8')} characters\n")
