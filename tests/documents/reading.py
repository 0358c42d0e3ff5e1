"""What the tests of formats share: one file in, one document or refusal out."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reportlab.pdfgen.canvas import Canvas

from crag.documents.loaders import load
from crag.documents.sources import SourceText, Unusable


def only(path: Path) -> SourceText:
    """Return the one document of a file."""
    (loaded,) = load(path)
    assert isinstance(loaded, SourceText), loaded
    return loaded


def refusal(path: Path) -> str:
    """Return why a file is not read, which is one line."""
    (loaded,) = load(path)
    assert isinstance(loaded, Unusable)
    assert loaded.source == str(path)
    assert "\n" not in loaded.reason
    return loaded.reason


def make_pdf(path: Path, pages: list[str], title: str = "") -> Path:
    """Write a PDF with a line on each page."""
    canvas = Canvas(str(path))
    if title:
        canvas.setTitle(title)
    for text in pages:
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()
    return path


def write_notebook(path: Path, cells: Sequence[Mapping[str, Any]]) -> Path:
    """Write a Jupyter notebook."""
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return path


def cases(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield what a file of cases holds: names, what is written, and how it is read."""
    for case in re.split(r"^##### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, body = case.partition("\n")
        if name != "is read as":
            named, written = name, body
        else:
            yield named, (written, body.removesuffix("\n"))
