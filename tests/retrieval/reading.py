"""What the tests of formats share: one file in, one document or refusal out."""

from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from crag.retrieval.documents import SourceText, Unusable
from crag.retrieval.loaders import load


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
