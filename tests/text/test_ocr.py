"""Pages of a PDF that are pictures: recognised where the extra `ocr` is, and within the limits."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from crag.documents.loaders import load
from crag.documents.sources import Unusable
from crag.text.pdf import read_pdf

LINES = [
    "The tide mill of Merrow",
    "",
    "Edith Halloran built the mill in 1783.",
    "The sluice gate is opened two hours after high water.",
]
A4 = (595, 842)
PROGRAM = """
import json, socket, sys
from pathlib import Path
def refuse(*_): raise AssertionError("it asked for an address")
socket.getaddrinfo = socket.socket.connect = refuse
if sys.argv[2] == "without": sys.modules["rapidocr"] = None
from crag.documents.loaders import load
(one,) = load(Path(sys.argv[1]))
print(json.dumps([getattr(one, "text", None), getattr(one, "reason", None)]))
"""


@cache
def picture(lines: tuple[str, ...], size: tuple[int, int] = (1240, 1754)) -> Image.Image:
    """Draw lines as a scanner sees them: dark grey on a light grey, a little askew."""
    from matplotlib.font_manager import findfont

    font = ImageFont.truetype(findfont("DejaVu Sans"), 28)
    page = Image.new("L", size, 238)
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        pen.text((150, 200 + 44 * number), line, fill=40, font=font)
    return page.rotate(0.3, fillcolor=238)


def scan(path: Path, *pages: str | Sequence[str], size: tuple[float, float] = A4) -> Path:
    """Write a PDF: a text is a text layer, a list the lines of a picture, which fills the page."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=size)
    for page in pages:
        if isinstance(page, str):
            canvas.drawString(72, 720, page)
        elif page:
            canvas.drawImage(ImageReader(picture(tuple(page))), 0, 0, *size)
        canvas.showPage()
    canvas.save()
    path.write_bytes(file.getvalue())
    return path


def told(path: Path, extra: str) -> tuple[str | None, str | None]:
    """Return text and reason of a file, read by a process that reaches no network."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), extra],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text, reason = json.loads(done.stdout)
    return text, reason


def test_pages_that_are_pictures_are_read_in_their_place(tmp_path: Path) -> None:
    german = "Die Mühle wurde größer; im Café gibt es Brötchen."
    body = scan(tmp_path / "a.pdf", "A text layer.", LINES, [], [german])
    _, blocks = read_pdf(body.read_bytes())
    assert [(block.first, block.text) for block in blocks] == [
        (1, "A text layer."), (2, LINES[0]), (2, " ".join(LINES[2:])), (4, german)
    ]  # fmt: skip


@pytest.mark.parametrize("extra", ["with", "without"])
def test_nothing_is_downloaded_and_a_missing_extra_is_named(extra: str, tmp_path: Path) -> None:
    text, reason = told(scan(tmp_path / "a.pdf", LINES), extra)
    if extra == "with":
        assert text
        assert "Edith Halloran built the mill in 1783." in text
        return
    assert reason
    assert "scanned? Run in a checkout of crag: pip install -c constraints.txt '.[ocr]'," in reason


def test_a_picture_without_text_is_told(tmp_path: Path) -> None:
    (one,) = load(scan(tmp_path / "a.pdf", [" "]))
    assert isinstance(one, Unusable)
    assert "no text in it, nor any in its pictures" in one.reason
